"""Compiled programs under the protocol: what a submission may do in one, and what it must get."""

import fcntl
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from runners.contract.evaluation import CaseStatus, Evaluation, Limits, Timing
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.graders import popcorn
from runners.harness.judge.session import EvaluationSession
from runners.harness.kernelbot import executable
from runners.harness.profile.kernel_profile import KernelProfiler
from runners.harness.profile.profiler import ProfileCase, profile_by
from runners.harness.toolchains import ncu, nvcc
from tests.doubles.judging import make_judging
from tests.doubles.program import ACTS, case, make_program_task
from tests.unit.runners.harness.conftest import Judge, Sit, found, judge, progress, sit, template

__all__ = ["Sit", "found", "judge", "progress", "sit", "template"]
pytestmark = pytest.mark.skipif(nvcc.toolchain() is None, reason="no nvcc")
_made: list[bytes] = []
"""The one program, once it is compiled."""


@pytest.fixture(autouse=True)
def _compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_really = executable._compile

    def from_before(session: EvaluationSession, compiler: Path, kind: str, program: int) -> None:
        if not _made:
            request = session.request.model_copy(update={"limits": Limits()})
            apart = replace(session, request=request, log=bytearray())
            compile_really(apart, compiler, kind, program)
            _made.append(os.pread(program, os.fstat(program).st_size, 0))
        else:
            os.write(program, _made[0])
            fcntl.fcntl(program, fcntl.F_ADD_SEALS, executable._SEALS)

    monkeypatch.setattr(executable, "_compile", from_before)


def judged(judge: Judge, act: int, mode: Mode = Mode.TEST, **changes: object) -> Evaluation:
    """The submission's deed of that number, as the only test and benchmark."""
    more = {key: changes.pop(key) for key in ("limits",) if key in changes}
    cases = (case(act),)
    task = make_program_task(**{"tests": cases, "benchmarks": cases, **changes})
    return judge(make_judging(ACTS, mode, task=task, **more))


DEEDS: Mapping[str, tuple[int, Verdict, str]] = {
    "a wrong answer": (1, Verdict.WRONG_ANSWER, "not the double"),
    "a forged verdict": (2, Verdict.DISALLOWED, "without a passing line for every case"),
    "a contradiction": (3, Verdict.DISALLOWED, "'test.0.status' twice, with different values"),
    "an exception": (4, Verdict.CRASHED, "what():  boom"),
    "a segfault": (5, Verdict.CRASHED, "killed by SIGSEGV"),
    "an endless loop": (6, Verdict.TIMED_OUT, "time limit"),
    "an early end": (7, Verdict.CRASHED, "does not end with"),
    "a flood": (8, Verdict.OUTPUT_EXCEEDED, "64 KiB"),
    "a flooded line": (9, Verdict.DISALLOWED, "1024 KiB"),
    "a memory bomb": (10, Verdict.MEMORY_EXCEEDED, "128 MiB"),
    "a failed call of CUDA": (12, Verdict.CRASHED, "status 110: no CUDA-capable device"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DEEDS)
def test_each_deed_has_its_verdict(judge: Judge, name: str) -> None:
    act, verdict, words = DEEDS[name]

    found = judged(judge, act, test_timeout=1 if act == 6 else 20, limits=Limits(memory=128 << 20))

    assert (found.verdict, found.stage) == (verdict, Stage.TEST), found.message + found.log
    assert words in found.message
    assert found.cases[-1].status is CaseStatus.FAILED


def test_beside_its_program_there_are_the_cases_alone_and_none_can_be_changed(
    judge: Judge,
) -> None:
    found = judged(judge, 11)

    assert found.verdict is Verdict.PASSED, found.message
    there = {line for line in found.log.splitlines() if line.startswith("there is")}
    assert there == {"there is eval.out", "there is popcorn-cases.txt"}
    assert "GAINED" not in found.log


def test_what_is_forged_before_main_cannot_be_stopped_and_is_said_to_be_unconfirmed(
    judge: Judge,
) -> None:
    found = judged(judge, 13)

    assert found.verdict is Verdict.PASSED
    assert found.environment.timing is Timing.IN_PROCESS


def test_forged_for_another_phase_it_is_refused(judge: Judge) -> None:
    assert judged(judge, 13, Mode.BENCHMARK).verdict is Verdict.DISALLOWED


@pytest.mark.parametrize("mode", [Mode.BENCHMARK, Mode.PROFILE, Mode.RANKED])
def test_an_honest_program_passes_in_every_mode(judge: Judge, mode: Mode) -> None:
    found = judged(judge, 0, mode)

    assert found.verdict is Verdict.PASSED, found.message
    seeds = [line for line in found.log.splitlines() if line.startswith("seed")]
    assert seeds[0] == "seed none"
    if mode is Mode.RANKED:
        assert seeds[1] != "seed none"
        measured = found.cases[-1].measurement
        assert measured is not None
        assert measured.time_ns == 7


def test_a_profiled_program_has_its_kernels_looked_at(
    judge: Judge, found: ncu.Ncu, monkeypatch: pytest.MonkeyPatch
) -> None:
    def profile_here(
        session: EvaluationSession, cases: Sequence[Workload], look: ProfileCase
    ) -> None:
        profile_by(KernelProfiler(session, found), cases, look)

    monkeypatch.setattr(popcorn, "profile_kernels", profile_here)
    seen = judged(judge, 15, Mode.PROFILE)
    assert seen.verdict is Verdict.PASSED
    assert [(each.name, each.content()) for each in seen.files] == [
        ("case-1.ncu-rep", b"doubles\n"),
        (
            "case-1.csv",
            b'"ID","Kernel Name","Metric Name","Metric Value"\n"0","doubles","Duration","1"\n',
        ),
    ]
    assert "\nncu 0.0.1, size: 3; act: 15; seed: 5:\n  doubles (1, 1, 1)" in seen.log
    nothing = judged(judge, 0, Mode.PROFILE)
    assert nothing.verdict is Verdict.PASSED
    assert "no profile: no kernel was launched between the marks of the profiler" in nothing.log
    assert judged(judge, 15, Mode.TEST).files == ()


def test_its_own_exit_statuses_may_be_the_submissions(judge: Judge) -> None:
    found = judged(judge, 14)
    assert found.verdict is Verdict.CRASHED
    assert found.message == (
        "the evaluation exited with status 113: seed none; "
        "alone, the task's eval.cu exits so if it could not read its cases"
    )
