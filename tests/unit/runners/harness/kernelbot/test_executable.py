"""Programs are really compiled, in a sandbox, and what is wrong with one is told."""

import os
from pathlib import Path

import pytest

from runners.contract.evaluation import CaseStatus, Evaluation, Limits, Progress, Timing
from runners.contract.task import COMPILE_S, BuildConfig, Mode
from runners.contract.verdict import Stage, Verdict
from runners.harness.kernelbot import executable
from runners.harness.kernelbot.executable import command
from runners.harness.sandbox.make import End
from runners.harness.toolchains import nvcc
from runners.harness.verdicts import MachineError
from tests.doubles.judging import make_judging
from tests.doubles.program import DOUBLES, EVAL, MISSPELT, make_program_task
from tests.unit.runners.harness.conftest import Judge, Sit, judge, progress, sit, template

__all__ = ["Sit", "judge", "progress", "sit", "template"]
needs_nvcc = pytest.mark.skipif(nvcc.toolchain() is None, reason="no nvcc")
ONE_SOURCE = BuildConfig(sources=("eval.cu",), defines={"FACTOR": 2})


def judged(judge: Judge, source: str, mode: Mode = Mode.TEST, **more: object) -> Evaluation:
    """Judged as a single source, which compiles in half the time."""
    task = make_program_task(config=ONE_SOURCE)
    files = {**task.files, "eval.cu": f'#include "submission.cu"\n{EVAL}'}
    return judge(make_judging(source, mode, task=task.model_copy(update={"files": files}), **more))


def test_the_command_line_is_kernelbots() -> None:
    config = BuildConfig(
        sources=("eval.cu", "submission.cu"),
        defines={"SIZE": 4, "FAST": None, "EXACT": True, "NAME": "float"},
        compile_flags=("-lineinfo", "-lcublas"),
    )
    line = command(Path("/cuda/bin/nvcc"), config, 90)
    assert line[:3] == ("/cuda/bin/nvcc", "--std=c++20", "-DNDEBUG")
    assert line[-11:] == (
        "-Xptxas=--warn-on-spills", "-lineinfo", "-lcublas", "-I.", "-DSIZE=4", "-DFAST",
        "-DEXACT=1", "-DNAME=float", "eval.cu", "submission.cu",
        "-gencode=arch=compute_90a,code=sm_90a",
    )  # fmt: skip


@pytest.mark.parametrize(("capability", "named"), [(75, "75"), (89, "89"), (100, "100a")])
def test_it_is_compiled_for_the_very_gpu(capability: int, named: str) -> None:
    line = command(Path("nvcc"), BuildConfig(), capability)
    assert line[-1] == f"-gencode=arch=compute_{named},code=sm_{named}"
    assert not [word for word in command(Path("nvcc"), BuildConfig(), None) if "arch" in word]


def test_the_time_to_compile_comes_on_top_of_the_phases() -> None:
    task = make_program_task(test_timeout=10, ranked_timeout=20)
    assert task.limit_s(Mode.TEST) == 10 + COMPILE_S
    assert task.limit_s(Mode.RANKED) == 30 + COMPILE_S


def test_a_runner_that_cannot_compile_blames_nobody(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvcc, "find", lambda: None)
    with pytest.raises(
        MachineError, match="cannot compile the task's program: there is no nvcc in"
    ):
        judged(judge, DOUBLES)


@needs_nvcc
@pytest.mark.slow
def test_a_right_submission_passes_all_phases_and_tells_what_it_uses(
    judge: Judge, progress: list[Progress]
) -> None:
    found = judged(judge, f"{DOUBLES}__global__ void k() {{}}\n", Mode.RANKED)

    assert found.verdict is Verdict.PASSED, found.message + found.log
    assert [case.status for case in found.cases] == [CaseStatus.PASSED] * 4
    assert found.environment.timing is Timing.IN_PROCESS
    assert {"compile", "test", "leaderboard"} == found.durations_s.keys()
    lines = found.log.splitlines()
    assert lines[0] == f"compiled by {nvcc.toolchain()}"
    assert any("Used" in line and "registers" in line for line in lines)
    assert "seed none" in lines
    assert [told.stage for told in progress][:3] == [Stage.PREPARE, Stage.BUILD, Stage.BUILD]


@needs_nvcc
@pytest.mark.slow
def test_an_error_is_told_with_file_line_and_caret(judge: Judge) -> None:
    found = judged(judge, MISSPELT, Mode.RANKED)

    assert (found.verdict, found.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    assert found.message == 'submission.cu:5: error: identifier "valu" is undefined'
    lines = found.log.splitlines()
    at = lines.index('submission.cu(5): error: identifier "valu" is undefined')
    assert lines[at + 1].strip().endswith("doubled.push_back(2 * valu);")
    assert lines[at + 2].index("^") == lines[at + 1].index("valu)")
    assert [case.status for case in found.cases] == [CaseStatus.SKIPPED] * 4


WITHOUT_KERNEL = '#include "task.h"\n'
LARGE = DOUBLES + "__attribute__((used)) char much[12 << 20] = {1};\n"
HIDDEN = "".join(
    f'asm(".incbin \\"{path}\\"");\n'
    for path in ("solutions/correct/x.cu", "/proc/1/environ", "/proc/1/mem", "popcorn-cases.txt")
)
HOSTILE = {
    "no kernel": (WITHOUT_KERNEL, Verdict.BUILD_FAILED, "undefined reference to `custom_kernel("),
    "a file of the machine": (
        f'#include "/etc/passwd"\n{DOUBLES}', Verdict.BUILD_FAILED, "passwd:1: error",
    ),
    "the cases": (
        f'#include "popcorn-cases.txt"\n{DOUBLES}', Verdict.BUILD_FAILED, "submission.cu:1: ",
    ),
    "what is not there, or not to be read": (
        DOUBLES + HIDDEN, Verdict.BUILD_FAILED, "not found: solutions/correct/x.cu",
    ),
    "a large program": (LARGE, Verdict.OUTPUT_EXCEEDED, "File too large"),
}  # fmt: skip


@needs_nvcc
@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_or_may_not_be_compiled_has_its_verdict(judge: Judge, name: str) -> None:
    source, verdict, words = HOSTILE[name]
    limits = Limits(disk=(8 if source == LARGE else 64) << 20)

    found = judged(judge, source, limits=limits)

    assert (found.verdict, found.stage) == (verdict, Stage.BUILD), found.message + found.log
    assert words in found.message
    if source.endswith(HIDDEN):
        assert found.log.count("file not found") == HIDDEN.count("incbin")


def test_a_program_that_was_made_may_still_be_too_large() -> None:
    ruling = executable._error_of(End.TOO_LARGE, 64 << 20)
    assert ruling is not None
    assert ruling.verdict is Verdict.OUTPUT_EXCEEDED
    assert ruling.message == "the program has more than 64 MiB"


BOMB = "#define A0 x x x x x x x x x x\n" + "".join(
    f"#define A{n + 1} {' '.join([f'A{n}'] * 10)}\n" for n in range(9)
)


@needs_nvcc
@pytest.mark.parametrize(
    ("seconds", "verdict", "words"),
    [
        (1, Verdict.TIMED_OUT, "compiling took longer than 1 s"),
        (60, Verdict.MEMORY_EXCEEDED, "compiling took more than 64 MiB"),
    ],
)
def test_compiling_without_end_is_ended(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, seconds: int, verdict: Verdict, words: str
) -> None:
    monkeypatch.setattr(executable, "COMPILE_S", seconds)
    memory = Limits().memory if verdict is Verdict.TIMED_OUT else 64 << 20
    limits = Limits(memory=memory)

    found = judged(judge, f"{BOMB}A9\n", limits=limits)

    assert (found.verdict, found.stage) == (verdict, Stage.BUILD), found.message
    assert words in found.message
    assert found.wall_s < 20


@needs_nvcc
def test_more_words_than_anybody_reads_are_cut_and_no_reason_to_refuse(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executable, "PRINTED_MAX", 2000)
    found = judged(judge, "#warning many words\n" * 100)

    assert found.verdict is Verdict.BUILD_FAILED
    assert "many words" in found.log


@needs_nvcc
def test_no_descriptor_is_left(judge: Judge) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only their number

    before = opened()
    judged(judge, "#error no\n")
    assert opened() == before
