"""The keys of task.yml by themselves, before any other file is read."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.schema import MAX_CASES, TaskYaml, read_schema
from bot.domain.tasks.yaml_document import read_document

BASE = """\
files: [{name: kernel.cu, source: "@SUBMISSION@"}, {name: main.cu, source: main.cu}]
lang: cu
config: {sources: [main.cu, kernel.cu]}
description: words
tests: [{size: 3}]
benchmarks: [{size: 4}]
"""
CODE = BASE.replace("config: {sources: [main.cu, kernel.cu]}\n", "")
LAUNCH = "launch: {kernel: k, params: [in0, out0, size], grid: [size], block: [64]}\n"


def read(text: str, *, strict: bool = True) -> tuple[TaskYaml, tuple[str, ...]]:
    return read_schema(read_document(text.encode(), "task.yml"), strict=strict)


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        read(text)
    return caught.value.message


def test_what_is_written_is_read_without_a_warning() -> None:
    written, warnings = read(BASE)
    assert written.config.sources == ("main.cu", "kernel.cu")
    assert warnings == ()


def test_unknown_keys_are_warnings_only_when_not_strict() -> None:
    _, (warning,) = read(BASE + "ranking: last\n", strict=False)
    assert warning == "task.yml:7: unknown key 'ranking'; did you mean 'ranking_by'?"
    assert warning == refusal(BASE + "ranking: last\n")


def test_an_unknown_key_is_told_before_a_missing_one() -> None:
    text = BASE.replace("source: main.cu", "sauce: main.cu")
    assert refusal(text) == "task.yml:1: unknown key 'sauce'; did you mean 'source'?"


def test_kernelbot_s_validation_is_taken_and_passed_over() -> None:
    written, warnings = read(BASE + "validation: {version: v1, script: look.py, top: 10}\n")
    assert warnings == ()
    assert written.validation == {"version": "v1", "script": "look.py", "top": 10}


def test_too_many_cases_are_refused() -> None:
    cases = ", ".join(f"{{size: {size}}}" for size in range(MAX_CASES + 1))
    assert f"{MAX_CASES + 1} tests" in refusal(BASE.replace("{size: 3}", cases))


def test_a_null_list_of_cases_is_an_empty_one() -> None:
    assert "'tests' is empty" in refusal(BASE.replace("[{size: 3}]", ""))


@pytest.mark.parametrize(
    "part",
    [
        "grid: [blocks], block: [64]",
        "grid: [1], block: [64, size / 0]",
        "grid: [0], block: [64]",
        "grid: [size // 4], block: [64]",
        "grid: [1], block: [1 - size]",
        "grid: [1], block: [1], shared: 0 - size",
        "grid: [], block: [64]",
        "grid: [1, 1, 1, 1], block: [64]",
    ],
)
def test_a_launch_that_some_case_cannot_compute_is_refused(part: str) -> None:
    launch = f"launch: {{kernel: k, params: [out0], {part}}}\n"
    assert "task.yml:6: launch." in refusal(CODE + launch)


def test_a_launch_may_use_no_shared_memory() -> None:
    text = "launch: {kernel: k, params: [out0], grid: [size], block: [64], shared: 0}\n"
    launch = read(CODE + text)[0].launch
    assert launch is not None
    assert (launch.grid, launch.block, launch.shared) == (("size",), (64,), 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BASE + LAUNCH, "task.yml:3: a task with a 'launch' compiles only the submission"),
        (CODE + LAUNCH + "device: cpu\n", "device code always runs on 'cuda'"),
        (CODE + LAUNCH + "format: kernelbench\n", "is only for lang: py"),
        (CODE + LAUNCH.replace("[in0, out0, size]", "[in0]"), "the output that the kernel writes"),
    ],
)
def test_a_launch_beside_what_it_cannot_have_is_refused(text: str, words: str) -> None:
    assert words in refusal(text)


def test_a_launch_key_that_does_not_exist_is_refused_with_the_nearest() -> None:
    text = BASE + "launch: {kernel: k, grid: [1], blocks: [64], block: [1]}\n"
    assert "did you mean 'block'?" in refusal(text)


PYTHON = BASE.replace("kernel.cu", "submission.py").replace("lang: cu", "lang: py")
NO_CONFIG = PYTHON.replace("config: {sources: [main.cu, submission.py]}\n", "")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (PYTHON, "sources"),
        (NO_CONFIG + "config: {include_dirs: [x]}\n", "include_dirs"),
        (NO_CONFIG + "config: {defines: {N: 1}}\n", "defines"),
        (NO_CONFIG + "config: {compile_flags: [-O3]}\n", "compile_flags"),
        (NO_CONFIG + "launch: {kernel: k, grid: [1], block: [1]}\n", "launch"),
        (BASE.replace("{sources:", "{main: eval.py, sources:"), "main"),
    ],
)
def test_a_key_of_the_other_language_is_refused(text: str, key: str) -> None:
    assert f"{key!r} has no effect with" in refusal(text)


@pytest.mark.parametrize(("key", "text"), [("flops", "0"), ("bytes", "0 - size")])
def test_work_that_is_not_above_zero_is_refused(key: str, text: str) -> None:
    assert "the value must be at least 1" in refusal(BASE + f"{key}: {text}\n")
