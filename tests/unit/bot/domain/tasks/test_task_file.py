"""task.yml: every key is honoured, and every mistake is refused with its line."""

import contextlib
import json
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.task_file import MAX_TASK, ROUNDS, digest, own_rounds, parse_task, read_task
from runners.contract.evaluation import RoundPolicy
from runners.contract.task import (
    BuildConfig,
    Device,
    Difficulty,
    Grader,
    IsolationLayer,
    RankingBy,
    TaskFormat,
)
from runners.slots.harness import LINE_MAX
from tests.doubles.factories import make_task

REFERENCE = """
import torch
def generate_input(size, seed): ...
def check_implementation(data, output): ...
"""
BASE = """\
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: task.py, source: task.py}
  - {name: utils.py, source: ../utils.py}
  - {name: reference.py, source: reference.py}
lang: py
description: "# Add"
templates: {Python: template.py}
tests:
  - {size: 7, seed: 1}
benchmarks:
  - {size: 1000, seed: 2}
"""
KERNELBOT_LINES = BASE.count("\n")


def make_bundle(text: str = BASE, **files: str) -> TaskBundle:
    contents = {
        "utils.py": "u = 1\n",
        "add/task.yml": text,
        "add/task.py": "t = 1\n",
        "add/reference.py": REFERENCE,
        "add/template.py": "def custom_kernel(data): ...\n",
        "add/eval.py": "main = 1\n",
        **files,
    }
    return TaskBundle({path: content.encode() for path, content in contents.items()}, "add")


def refusal(text: str, **files: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_task(make_bundle(text, **files))
    return caught.value.message


def test_the_least_task_has_the_documented_defaults() -> None:
    task = parse_task(make_bundle())
    assert task.name == "add"
    assert task.lang == "py"
    assert task.submission_file == "submission.py"
    assert set(task.files) == {"task.py", "utils.py", "reference.py", "template.py"}
    assert (task.test_timeout, task.benchmark_timeout, task.ranked_timeout) == (180, 180, 180)
    assert task.ranking_by is RankingBy.LAST
    assert task.grader is Grader.NATIVE
    assert task.device is Device.ANY
    assert task.format is TaskFormat.KERNEL
    assert (task.seed, task.multi_gpu, task.mutates_inputs, task.lower_bound) == (
        None, False, False, True,
    )  # fmt: skip
    assert task.templates == {"Python": "template.py"}
    assert [case.spec for case in task.tests] == ["size: 7; seed: 1"]


def test_candidates_see_types_and_headers_but_neither_reference_nor_evaluation() -> None:
    files = "  - {name: eval.py, source: eval.py}\n  - {name: fast.cuh, source: fast.cuh}\n"
    text = BASE.replace("lang: py\n", files + "lang: py\n")
    task = parse_task(make_bundle(text, **{"add/fast.cuh": "// header\n"}))
    assert set(task.shared_files) == {"task.py", "utils.py", "fast.cuh"}


def test_a_task_whose_evaluation_is_called_utils_does_not_show_it() -> None:
    assert parse_task(make_bundle(BASE + "config: {main: utils.py}\n")).shared_files == ("task.py",)


def test_every_other_key_reaches_the_definition() -> None:
    text = BASE + textwrap.dedent("""\
        config: {main: eval.py}
        test_timeout: 11
        benchmark_timeout: 12
        ranked_timeout: 13
        ranking_by: geom
        seed: 99
        gpus: [H100, "MI300x8"]
        libraries: [triton]
        device: cpu
        mutates_inputs: true
        flops: size
        bytes: 12*size
        lower_bound: false
        isolation: [namespaces, seccomp]
        version_note: faster cases
        difficulty: hard
        validation: {version: v1, script: look.py}
        """)
    task = parse_task(make_bundle(text))
    assert (task.test_timeout, task.benchmark_timeout, task.ranked_timeout) == (11, 12, 13)
    assert task.ranking_by is RankingBy.GEOM
    assert task.seed == 99
    assert task.gpus == ("H100", "MI300x8")
    assert task.libraries == ("triton",)
    assert task.device is Device.CPU
    assert task.mutates_inputs
    assert (task.flops, task.bytes, task.lower_bound) == ("size", "12*size", False)
    assert task.isolation == (IsolationLayer.NAMESPACES, IsolationLayer.SECCOMP)
    assert (task.version_note, task.difficulty) == ("faster cases", Difficulty.HARD)
    assert "difficulty" not in parse_task(make_bundle()).model_dump()


def test_case_values_keep_their_types_and_their_order() -> None:
    text = BASE.replace(
        "{size: 7, seed: 1}", "{m: [96, 128], flag: true, x: 0.5, kind: wide, s: -3}"
    )
    (case,) = parse_task(make_bundle(text)).tests
    assert case.args == {"m": (96, 128), "flag": True, "x": 0.5, "kind": "wide", "s": -3}
    assert case.spec == "m: [96, 128]; flag: True; x: 0.5; kind: wide; s: -3"


def test_a_cuda_program_has_sources() -> None:
    text = textwrap.dedent("""\
        files:
          - {name: submission.cu, source: "@SUBMISSION@"}
          - {name: eval.cu, source: eval.cu}
          - {name: reference.py, source: reference.py}
        lang: cu
        description: d
        config:
          sources: [eval.cu, submission.cu]
          include_dirs: [include]
          defines: {N: 4, FAST: null}
          compile_flags: [-O3]
        tests: [{size: 7}]
        benchmarks: [{size: 9}]
        """)
    own = {"add/eval.cu": '#include "task.h"\n', "add/include/task.h": "int main();\n"}
    task = parse_task(make_bundle(text, **own))
    assert task.lang == "cu"
    assert {"eval.cu", "task.h"} <= task.files.keys()
    assert task.device is Device.CUDA
    assert task.grader is Grader.POPCORN
    assert task.config == BuildConfig(
        sources=("eval.cu", "submission.cu"),
        include_dirs=("include",),
        defines={"N": 4, "FAST": None},
        compile_flags=("-O3",),
    )


LAUNCHED = """\
files:
  - {name: submission.cu, source: "@SUBMISSION@"}
  - {name: reference.py, source: reference.py}
lang: cu
description: d
launch: {kernel: add, params: [in0, out0, size], grid: [size // 256 + 1], block: [256]}
tests: [{size: 7, seed: 1}]
benchmarks: [{size: 9, seed: 2}]
"""


def test_a_task_of_device_code_has_a_launch_and_is_graded_by_the_judge() -> None:
    reference = REFERENCE + "def ref_kernel(data): ...\n"
    task = parse_task(make_bundle(LAUNCHED, **{"add/reference.py": reference}))

    assert (task.grader, task.device) == (Grader.NATIVE, Device.CUDA)
    assert task.launch is not None
    assert task.launch.grid == ("size // 256 + 1",)


def test_device_code_needs_a_reference_that_tells_the_outputs_form() -> None:
    with pytest.raises(UserError, match=r"reference\.py must define ref_kernel$"):
        parse_task(make_bundle(LAUNCHED))


def test_device_code_is_not_graded_by_an_evaluation_of_its_own() -> None:
    with pytest.raises(UserError, match="a task with a 'launch' needs grader 'native'"):
        parse_task(make_bundle(LAUNCHED + "grader: popcorn\n"))


def test_a_reference_without_our_functions_is_graded_by_its_own_evaluation() -> None:
    text = BASE.replace("lang: py\n", "  - {name: eval.py, source: eval.py}\nlang: py\n")
    task = parse_task(make_bundle(text, **{"add/reference.py": "def ref(): ...\n"}))
    assert task.grader is Grader.POPCORN


RANKS = BASE.replace("size: 7", "world_size: 2, size: 7").replace(
    "size: 1000", "world_size: 4, size: 1000"
)


def test_a_task_of_several_gpus_is_graded_by_its_own_evaluation() -> None:
    text = RANKS.replace("lang: py\n", "  - {name: eval.py, source: eval.py}\nlang: py\n")
    task = parse_task(make_bundle(text + "multi_gpu: true\n"))
    assert (task.grader, task.world_size) == (Grader.POPCORN, 4)


def test_an_assigned_check_counts_as_defined() -> None:
    source = "from utils import make\ncheck_implementation = make()\ndef generate_input(): ...\n"
    assert parse_task(make_bundle(**{"add/reference.py": source})).grader is Grader.NATIVE


def test_a_kernelbench_reference_is_native_with_its_three_names() -> None:
    source = "class Model: ...\ndef get_inputs(): ...\ndef get_init_inputs(): ...\n"
    task = parse_task(make_bundle(BASE + "format: kernelbench\n", **{"add/reference.py": source}))
    assert (task.format, task.grader) == (TaskFormat.KERNELBENCH, Grader.NATIVE)


@pytest.mark.parametrize(
    ("code", "device"),
    [
        ("x = torch.zeros(1, device='cuda')", Device.CUDA),
        ("x = torch.zeros(1, device='cuda:0')", Device.CUDA),
        ("x = torch.zeros(1).cuda()", Device.CUDA),
        ("# device='cuda'", Device.ANY),
        ("d = 'cuda' if torch.cuda.is_available() else 'cpu'", Device.ANY),
        ("if torch.cuda.is_available():\n    d = 'cuda'", Device.ANY),
        ("if x.device.type == 'cuda': pass", Device.ANY),
        ("s = 'a cuda kernel'", Device.ANY),
    ],
)
def test_a_hard_coded_cuda_makes_a_cuda_task(code: str, device: Device) -> None:
    assert parse_task(make_bundle(**{"add/reference.py": REFERENCE + code})).device is device


def test_a_template_under_the_submissions_name_is_stored_under_its_language() -> None:
    text = BASE.replace("template.py", "submission.py")
    task = parse_task(make_bundle(text, **{"add/submission.py": "slow = 1\n"}))
    assert task.templates == {"Python": "template-Python.py"}
    assert task.files["template-Python.py"] == "slow = 1\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BASE + "langs: py\n", (f"add/task.yml:{KERNELBOT_LINES + 1}", "did you mean 'lang'?")),
        (BASE + "zzzzqq: 1\n", ("the keys are:", "benchmark_timeout")),
        (BASE + "lang: py\n", ("the key 'lang' appears twice (first in line 6)",)),
        (BASE.replace("lang: py\n", ""), ("'lang' is missing",)),
        (BASE.replace('description: "# Add"\n', ""), ("'description' is missing",)),
        (BASE.replace("lang: py", "lang: rust"), ("add/task.yml:6", "lang", "'py' or 'cu'")),
        (BASE.replace('"@SUBMISSION@"', "task.py"), ("0 files have the source",)),
        (BASE.replace("source: task.py", 'source: "@SUBMISSION@"'), ("2 files", "exactly one")),
        (
            BASE.replace("name: task.py", "name: sub/task.py"),
            ("add/task.yml:3", "'sub/task.py' is not a valid file name"),
        ),
        (BASE.replace("name: task.py", "name: utils.py"), ("'utils.py' appears twice",)),
        (BASE.replace("source: task.py", "source: no.py"), ("add/task.yml:3", "no such file")),
        (BASE.replace("../utils.py", "../../utils.py"), ("add/task.yml:4", "outside the task")),
        (BASE.replace("../utils.py", "/etc/passwd"), ("outside the task",)),
        (BASE.replace("source: task.py", "sauce: task.py"), ("'sauce'", "did you mean 'source'?")),
        (BASE.replace("  - {size: 7, seed: 1}\n", "  []\n"), ("'tests' is empty",)),
        (BASE.replace("benchmarks:\n  - {size: 1000, seed: 2}\n", ""), ("'benchmarks' is empty",)),
        (BASE.replace("{size: 7, seed: 1}", "{size: {a: 1}}"), ("add/task.yml:10",)),
        (BASE.replace("{size: 7, seed: 1}", "{2: 1}"), ("add/task.yml:10", "plain word")),
        (BASE.replace("{size: 7, seed: 1}", "7"), ("add/task.yml:10",)),
        (BASE + "test_timeout: 0\n", (f":{KERNELBOT_LINES + 1}:", "test_timeout")),
        (BASE + "ranked_timeout: 3601\n", ("ranked_timeout",)),
        (BASE + "test_timeout: '30'\n", ("test_timeout", "integer")),
        (BASE + "multi_gpu: true\n", ("add/task.yml:10", "world_size")),
        (
            RANKS + "multi_gpu: true\n",
            (
                "multi_gpu needs its own evaluation program and grader 'popcorn' (or",
                "popcorn' (or add an eval.py to the task)",
            ),
        ),
        (BASE + "flops: 2*m\n", (f":{KERNELBOT_LINES + 1}:", "flops: 'm' is no argument")),
        (BASE + "bytes: size - 7\n", ("bytes: 0 for the case 'size: 7; seed: 1'",)),
        (BASE + "flops: open(1)\n", ("flops",)),
        (BASE + "grader: popcorn\n", ("'eval.py' is not listed in files",)),
        (BASE + "gpus: ['a b']\n", ("gpus",)),
        (BASE + "isolation: [moat]\n", ("isolation", "'namespaces'")),
        (BASE + "config: {mein: eval.py}\n", ("did you mean 'main'?",)),
        (BASE.replace("lang: py", "lang: cu"), ("needs 'sources'",)),
        (BASE + "config: {sources: [x.cu]}\n", ("'sources' has no effect with lang: py",)),
        (
            BASE.replace("lang: py", "lang: cu\nconfig: {sources: [x.cu]}"),
            ("'x.cu' is not listed in files",),
        ),
        (BASE.replace("template.py", "nothing.py"), ("add/task.yml:8", "no such file")),
    ],
)
def test_a_mistake_is_refused_with_its_line_and_the_correct_form(
    text: str, words: tuple[str, ...]
) -> None:
    message = refusal(text)
    for word in ("add/task.yml:", *words):
        assert word in message


def test_a_reference_that_does_not_parse_is_refused_with_its_own_line() -> None:
    message = refusal(BASE, **{"add/reference.py": "x = 1\ndef broken(:\n"})
    assert message.startswith("add/reference.py:2:")


def test_a_reference_that_lacks_a_function_is_named() -> None:
    message = refusal(BASE, **{"add/reference.py": "def generate_input(): ...\n"})
    assert "must define check_implementation" in message
    assert "add/task.yml:13: reference.py must define check_implementation" in refusal(
        BASE + "grader: native\n", **{"add/reference.py": "def generate_input(): ...\n"}
    )


def test_a_task_that_no_runner_could_be_handed_is_refused() -> None:
    filler = "# " + "x" * MAX_TASK
    assert "task.yml: the task has 8," in refusal(BASE, **{"add/task.py": filler})
    worst = json.dumps("\x01" * MAX_SOURCE_BYTES)
    assert MAX_TASK + len(worst) < LINE_MAX


def test_a_file_that_is_not_text_is_refused_with_its_line() -> None:
    bundle = make_bundle()
    files = {**bundle.files, "add/task.py": b"x = 1\ny = '\xff'\n"}
    with pytest.raises(UserError, match=r"add/task\.py:2: this is not UTF-8"):
        parse_task(TaskBundle(files, "add"))


def test_unknown_keys_of_a_kernelbot_set_are_warnings() -> None:
    bundle = make_bundle(BASE + "arch: sm_90\ntests_extra: []\n")
    parsed = read_task(bundle, strict=False)
    assert parsed.task.name == "add"
    assert len(parsed.warnings) == 2
    assert f"add/task.yml:{KERNELBOT_LINES + 1}: unknown key 'arch'" in parsed.warnings[0]


def test_a_kernelbot_set_may_lack_benchmarks() -> None:
    text = BASE.replace("benchmarks:\n  - {size: 1000, seed: 2}\n", "benchmarks: []\n")
    (warning,) = read_task(make_bundle(text), strict=False).warnings
    assert "'benchmarks' is empty" in warning


@pytest.mark.parametrize("name", ["Add", "-add", "a b", "ä", "a" * 65])
def test_a_name_that_cannot_be_one_is_refused_with_the_form(name: str) -> None:
    with pytest.raises(UserError, match="not a valid task name"):
        parse_task(make_bundle(), name=name)


def test_a_task_at_the_top_of_a_zip_wants_a_name() -> None:
    text = BASE.replace("../utils.py", "utils.py")
    bundle = make_bundle(text)
    top = {path.removeprefix("add/"): data for path, data in bundle.files.items()}
    assert parse_task(TaskBundle(top), name="sum").name == "sum"
    assert parse_task(TaskBundle(top, name="sum")).name == "sum"
    with pytest.raises(UserError, match="'' is not a valid task name"):
        parse_task(TaskBundle(top))


def test_a_given_name_overrides_the_folders() -> None:
    assert parse_task(make_bundle(), name="other-name").name == "other-name"


def test_a_bundle_without_task_file_is_refused() -> None:
    with pytest.raises(UserError, match=r"add/task\.yml: there is no such file"):
        parse_task(TaskBundle({}, "add"))


def test_the_digest_changes_with_everything_but_the_note_and_the_difficulty() -> None:
    base = digest(parse_task(make_bundle()))
    assert digest(parse_task(make_bundle())) == base
    for note in ("version_note: x\n", "difficulty: easy\n"):
        assert digest(parse_task(make_bundle(BASE + note))) == base
    first, second = BASE.splitlines(keepends=True)[2:4]
    assert digest(parse_task(make_bundle(BASE.replace(first + second, second + first)))) == base
    changes = (
        make_bundle(BASE.replace("# Add", "# Sum")),
        make_bundle(BASE + "test_timeout: 20\n"),
        make_bundle(BASE.replace("size: 7", "size: 8")),
        make_bundle(**{"add/template.py": "x = 2\n"}),
        make_bundle(**{"utils.py": "u = 2\n"}),
    )
    assert len({base, *(digest(parse_task(bundle)) for bundle in changes)}) == len(changes) + 1


@given(st.integers(0, len(BASE)), st.text(max_size=12))
def test_any_edit_gives_a_task_or_a_refusal(at: int, inserted: str) -> None:
    with contextlib.suppress(UserError):
        assert parse_task(make_bundle(BASE[:at] + inserted + BASE[at:])).name == "add"


def test_no_published_task_says_how_often_it_is_timed() -> None:
    rounds = RoundPolicy(looks=(3,), samples=7)
    files = {ROUNDS: rounds.model_dump_json()}
    asked = make_task(format=TaskFormat.IO_CONTRACT, files=files)
    assert own_rounds(asked) == rounds
    assert own_rounds(make_task(format=TaskFormat.IO_CONTRACT)) is None
    assert own_rounds(make_task(files=files)) is None
    published = make_task(format=TaskFormat.IO_CONTRACT, files=files, grader=Grader.POPCORN)
    assert own_rounds(published) is None


def test_an_evaluation_program_that_the_judge_does_not_use_makes_no_cuda_task() -> None:
    listed = "  - {name: eval.py, source: eval.py}\nlang: py\nconfig: {main: eval.py}\n"
    text = BASE.replace("lang: py\n", listed)
    timer = {"add/eval.py": "x = torch.zeros(1).cuda()\n"}
    assert parse_task(make_bundle(text + "grader: native\n", **timer)).device is Device.ANY
    own = parse_task(make_bundle(text + "grader: popcorn\n", **timer))
    assert own.device is Device.CUDA
