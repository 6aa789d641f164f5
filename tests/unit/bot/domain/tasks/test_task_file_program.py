"""What a task of CUDA C++ sources may say, and how its headers travel."""

import textwrap

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.task_file import parse_task
from runners.contract.task import Grader, TaskDefinition

TASK = textwrap.dedent("""\
    files:
      - {name: submission.cu, source: "@SUBMISSION@"}
      - {name: eval.cu, source: ../eval.cu}
      - {name: task.h, source: task.h}
    lang: cu
    description: d
    config:
      sources: [eval.cu, submission.cu]
    tests: [{size: 7}]
    benchmarks: [{size: 9}]
    """)
FILES = {"eval.cu": "int main() {}\n", "add/task.h": "#pragma once\n"}


def parse(config: str = "", **files: str) -> TaskDefinition:
    text = TASK.replace("  sources: [eval.cu, submission.cu]\n", config) if config else TASK
    all_files = {**FILES, "add/task.yml": text, **files}
    return parse_task(TaskBundle({path: each.encode() for path, each in all_files.items()}, "add"))


def with_headers(folders: str) -> str:
    return f"  sources: [eval.cu, submission.cu]\n  include_dirs: {folders}\n"


def test_a_task_of_sources_is_graded_by_its_own_program() -> None:
    task = parse()
    assert task.grader is Grader.POPCORN
    assert task.is_program
    assert set(task.files) == {"eval.cu", "task.h"}


def test_a_submission_may_be_included_by_a_source() -> None:
    files = {"eval.cu": '#include "submission.cu"\nint main() {}\n'}
    assert parse("  sources: [eval.cu]\n", **files).config.sources == ("eval.cu",)


def test_headers_of_a_folder_travel_beside_the_other_files() -> None:
    files = {"add/lib/a.cuh": "// a\n", "add/lib/b.cuh": "// b\n", "add/more/a.cuh": "// a\n"}
    task = parse(with_headers("[lib, ./more, .]"), **files)
    assert task.files["a.cuh"] == "// a\n"
    assert task.files["b.cuh"] == "// b\n"


SOURCES = "  sources: [eval.cu, submission.cu]\n"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            "  sources: [submission.cu]\n",
            ("add/task.yml:8", "none of the sources belongs to the task"),
        ),
        ("  sources: [eval.cu]\n", ("add/task.yml:8", "so it would not be compiled")),
        (
            "  sources: [eval.cu, task.h, submission.cu]\n",
            ("'task.h' is not a source file", "headers"),
        ),
        ("  sources: [eval.cu, eval.cu, submission.cu]\n", ("'eval.cu' appears twice",)),
        ("  sources: [other.cu, submission.cu]\n", ("'other.cu' is not listed in files",)),
        (
            "  sources: [lib/eval.cu, submission.cu]\n",
            ("add/task.yml:8", "'lib/eval.cu' is not a valid file name"),
        ),
        (f"{SOURCES}  defines: {{9X: 1}}\n", ("add/task.yml:9", "'9X' is not a macro name")),
        (
            f"{SOURCES}  compile_flags: [-O3, -o=x]\n",
            ("add/task.yml:9", "'-o=x'", "remove this flag"),
        ),
        (with_headers("[/opt/include]"), ("add/task.yml:9", "is outside the task's folder")),
        (with_headers("[../lib]"), ("add/task.yml:9", "is outside the task's folder")),
        (with_headers("[lib]"), ("add/task.yml:9", "'lib': the task has no folder with this name")),
        (with_headers("[deep]"), ("'deep' has a folder in it ('below')", "one flat folder")),
        (with_headers("[same]"), ("'same' has a 'task.h'", "already")),
        (f"{SOURCES}  libs: [cublas]\n", ("libs",)),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_its_line(
    config: str, words: tuple[str, ...]
) -> None:
    files = {"add/deep/below/x.h": "", "add/same/task.h": "// another\n"}
    with pytest.raises(UserError) as refused:
        parse(config, **files)
    for word in words:
        assert word in refused.value.message


def test_the_judge_of_two_processes_takes_no_sources() -> None:
    with pytest.raises(UserError, match="needs its own evaluation program"):
        parse(f"{SOURCES}grader: native\n")
