import os
from contextlib import ExitStack
from types import SimpleNamespace
from typing import cast
from unittest.mock import MagicMock

import psutil
import pytest
import torch

from bot.domain.status import disclosed
from runners.contract.evaluation import (
    CaseKind,
    CaseStatus,
    Measurement,
    Progress,
    RoundPolicy,
    StopReason,
)
from runners.contract.task import Mode, RankingBy, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import TimeBudget
from runners.harness.gpu import buffers
from runners.harness.graders import native
from runners.harness.graders.native import grade
from runners.harness.judge import pool as pools
from runners.harness.judge import session as sessions
from runners.harness.judge.pool import CandidatePool
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol.arena import Plan
from runners.harness.protocol.builds import Builds
from runners.harness.protocol.values import ScalarNode
from runners.harness.supervision.spares import Spares
from runners.harness.timing.stopwatch import WorkloadTimer
from runners.harness.verdicts import GradingResult, OutOfTimeError, VerdictError
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Judge, Sit, judge, progress, sit, template

__all__ = ["judge", "progress", "sit", "template"]
MEASURED = Measurement(
    time_ns=1.0, half_width_ns=0.0, bound_ns=1.0, resolution_ns=0.0, rounds=1, samples=((1.0,),),
    stop_reason=StopReason.ROUND_CAP,
)  # fmt: skip
TWO = tuple(Workload(args={"size": size, "seed": 1}) for size in (10, 20))


def test_a_test_run_has_tests_alone(sit: Sit, progress: list[Progress]) -> None:
    result = grade(sit(make_judging(SORTED, task=make_sort_task(tests=TWO))))

    assert [case.kind for case in result.cases] == [CaseKind.TEST] * 2
    assert [(told.stage, told.done) for told in progress] == [
        (Stage.BUILD, 0), (Stage.TEST, 1), (Stage.TEST, 2),
    ]  # fmt: skip


def test_the_rounds_of_all_benchmarks_are_counted_on(sit: Sit, progress: list[Progress]) -> None:
    request = make_judging(SORTED, Mode.BENCHMARK, task=make_sort_task(benchmarks=TWO))
    assert grade(sit(request)).passed
    timed = [told for told in progress if told.stage is Stage.TIMING]
    most = request.round_policy.looks[-1]
    done = [told.done for told in timed]
    assert done == sorted(done)
    assert 0 < min(done) <= most < max(done) <= 2 * most
    assert {told.total for told in timed} == {2 * most}


def test_a_failing_build_skips_every_test(sit: Sit) -> None:
    result = grade(sit(make_judging("x = (", task=make_sort_task(tests=TWO))))

    assert (result.verdict, result.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    assert {case.status for case in result.cases} == {CaseStatus.SKIPPED}


def test_a_failing_build_in_a_benchmark_run_is_the_builds_failure(sit: Sit) -> None:
    result = grade(sit(make_judging("x = (", Mode.BENCHMARK)))

    assert (result.verdict, result.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)


def test_a_failing_test_names_its_case_and_skips_the_benchmarks(sit: Sit) -> None:
    result = grade(sit(make_judging("def custom_kernel(d): return d[1].zero_()", Mode.RANKED)))

    assert [case.status for case in result.cases] == [CaseStatus.FAILED, CaseStatus.SKIPPED]
    assert result.cases[0].message == "mismatch"


def test_the_tests_share_one_time_limit(sit: Sit) -> None:
    slow = SORTED.replace("    return", "    import time; time.sleep(1.6)\n    return")
    result = grade(sit(make_judging(slow, task=make_sort_task(SORT, tests=TWO, test_timeout=3))))

    assert result.verdict is Verdict.TIMED_OUT
    assert [case.status for case in result.cases] == [CaseStatus.PASSED, CaseStatus.FAILED]


def test_a_profile_run_times_and_then_profiles_each_benchmark(sit: Sit) -> None:
    result = grade(sit(make_judging(SORTED, Mode.PROFILE)))

    assert result.passed, result.message
    assert CaseKind.PROFILE in {case.kind for case in result.cases}


def test_each_benchmark_has_its_share_of_the_time_that_is_left(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[float, float]] = []

    def measure(_: WorkloadTimer, allowed: TimeBudget, report: object) -> Measurement:
        given.append((allowed.deadline.remaining, allowed.share.remaining))
        return MEASURED

    monkeypatch.setattr(WorkloadTimer, "measure", measure)
    task = make_sort_task(tests=(), benchmarks=TWO, benchmark_timeout=20)
    grade(sit(make_judging(SORTED, Mode.BENCHMARK, task=task)))

    assert [pytest.approx(each, abs=1) for each in ((20, 10), (20, 20))] == given


@pytest.mark.parametrize(
    ("on_gpu", "steps"),
    [
        (True, ["spares", "first", "begin", "tests", "timed", "close"]),
        (False, ["first", "tests", "timed"]),
    ],
)
def test_on_a_gpu_those_who_are_timed_start_while_the_first_candidate_tests(
    *, sit: Sit, monkeypatch: pytest.MonkeyPatch, on_gpu: bool, steps: list[str]
) -> None:
    made: list[str] = []
    monkeypatch.setattr(pools, "max_spares", lambda: 20)
    monkeypatch.setattr(Spares, "fill", lambda *_: made.append("spares"))
    monkeypatch.setattr(native, "_start_first", lambda *_: made.append("first"))
    monkeypatch.setattr(WorkloadTimer, "begin", lambda _: made.append("begin"))
    monkeypatch.setattr(CandidatePool, "close", lambda _: made.append("close"))
    monkeypatch.setattr(native, "_first_candidate", lambda *_: made.append("tests"))
    monkeypatch.setattr(native, "_run_benchmarks", lambda *_: made.append("timed"))
    session = sit(make_judging(SORTED, Mode.RANKED))
    session.on_gpu = on_gpu
    grade(session)

    assert made == steps


@pytest.mark.parametrize(
    ("mode", "looks", "free", "count"),
    [
        (Mode.TEST, (5,), 20, 1),
        (Mode.RANKED, (5, 8), 20, 7),
        (Mode.RANKED, (12,), 20, 9),
        (Mode.RANKED, (5, 8), 3, 3),
        (Mode.BENCHMARK, (1,), 20, 2),
        (Mode.BENCHMARK, (1, 2), 20, 3),
        (Mode.PROFILE, (5,), 20, 0),
    ],
)
def test_on_a_gpu_as_many_spares_start_at_once_as_candidates_start_at_first(
    *,
    sit: Sit,
    monkeypatch: pytest.MonkeyPatch,
    mode: Mode,
    looks: tuple[int, ...],
    free: int,
    count: int,
) -> None:
    counts: list[int] = []
    monkeypatch.setattr(pools, "max_spares", lambda: free)
    monkeypatch.setattr(Spares, "fill", lambda _, spec, count: counts.append(count))
    for step in ("_start_first", "_start_early", "_first_candidate", "_run_benchmarks", "_profile"):
        monkeypatch.setattr(native, step, lambda *_: None)
    rounds = RoundPolicy(looks=looks, samples=3)
    session = sit(make_judging(SORTED, mode, rounds=rounds))
    session.on_gpu = True
    grade(session)

    assert counts == [count]


@pytest.mark.parametrize("kept", [True, False])
def test_who_started_early_with_a_file_that_somebody_can_still_write_is_not_timed(
    *, sit: Sit, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    closed: list[str] = []
    session = sit(make_judging(SORTED))
    monkeypatch.setattr(session.builds, "seal", lambda: kept)
    pool = SimpleNamespace(close=lambda: closed.append("early"))
    timed = native._Timed(session.request.task.benchmarks, 20)
    timed.early = cast("WorkloadTimer", SimpleNamespace(pool=pool))
    tests = session.request.task.tests
    with ExitStack() as stack:
        native._start_first(session, tests, timed, stack)
        native._first_candidate(session, GradingResult(), tests, timed)

    assert closed == ([] if kept else ["early"])


def test_a_profile_ends_in_time(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[float] = []
    monkeypatch.setattr(native, "_run_benchmarks", lambda *_: None)
    monkeypatch.setattr(native, "profile", lambda *args: left.append(args[2].remaining))
    grade(sit(make_judging(SORTED, Mode.PROFILE, task=make_sort_task(benchmark_timeout=20))))

    assert left == [pytest.approx(20, abs=1)]


KEEPING = """
import os
from pathlib import Path
import torch
FOLDER = Path(os.environ["TORCH_EXTENSIONS_DIR"])
print("found", sorted(path.name for path in FOLDER.rglob("*")), flush=True)
FOLDER.mkdir(parents=True, exist_ok=True)
(FOLDER / "library").touch()
def custom_kernel(data):
    return torch.sort(data[0]).values
"""


def lines(session: EvaluationSession) -> list[str]:
    return bytes(session.log).decode().splitlines()


@pytest.mark.parametrize("mode", [Mode.RANKED, Mode.BENCHMARK])
def test_what_the_first_candidate_compiled_reaches_every_later_one(sit: Sit, mode: Mode) -> None:
    session = sit(make_judging(KEEPING, mode))

    result = grade(session)

    assert result.passed, result.message
    # the first candidate, and one for each of two rounds
    assert lines(session) == ["found []", "found ['library']", "found ['library']"]


TELLING = """
import mmap, os
from pathlib import Path
import torch
FOLDER = Path(os.environ["TORCH_EXTENSIONS_DIR"])
FOLDER.mkdir(parents=True, exist_ok=True)
def shared():
    for fd in range(3, 256):
        try:
            name = os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            continue
        if "memfd:builds" in name:
            yield fd
HELD = b"".join(os.pread(fd, 1 << 20, 0) for fd in shared())
FOUND = sorted({path.name for path in FOLDER.iterdir()})
print("found", FOUND, HELD.count(b"-mark"), len(list(shared())), flush=True)
def custom_kernel(data):
    mark = f"{data[0][0].item():.5f}-mark"
    (FOLDER / mark).touch()
    for fd in shared():
        for write in (
            lambda: os.pwrite(fd, mark.encode(), 1 << 19),
            lambda: mmap.mmap(fd, 1 << 20).write(mark.encode()),
            lambda: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_TRUNC)),
        ):
            try:
                write()
            except (OSError, PermissionError):
                pass
    return torch.sort(data[0]).values
"""


def test_nothing_of_a_candidate_that_saw_a_secret_input_reaches_a_later_one(sit: Sit) -> None:
    task = make_sort_task(tests=TWO)
    session = sit(make_judging(TELLING, Mode.RANKED, task=task))
    session.nonce = bytes(range(32))  # else all inputs are public

    result = grade(session)

    assert result.passed, result.message
    first, *later = lines(session)
    assert first.startswith("found [] 0 1")
    assert len(later) == 2
    assert later[0] == later[1]
    assert later[0].count("-mark") == len(TWO) + 1  # all of public inputs
    assert later[0].endswith(" 0 0")  # none has the file that all of them are given


def test_what_was_not_wholly_packed_reaches_nobody(sit: Sit) -> None:
    large = KEEPING.replace(".touch()", ".write_bytes(bytes(2 << 20))")
    session = sit(make_judging(large, Mode.RANKED))
    session.builds.close()
    session.builds = Builds(1 << 20)

    result = grade(session)

    assert result.passed, result.message
    assert lines(session) == ["found []"] * 3
    assert not session.builds.packed
    session.builds.close()
    session.builds = Builds(1)


def test_a_test_run_rehearses_nothing(sit: Sit) -> None:
    session = sit(make_judging(KEEPING))

    assert grade(session).passed
    assert lines(session) == ["found []"]
    assert "rehearse" not in session.durations_s


ONE_ROUND = RoundPolicy(looks=(1,), samples=3)


def test_for_one_round_without_tests_one_candidate_builds_and_writes_no_file(sit: Sit) -> None:
    session = sit(make_judging(TELLING, Mode.BENCHMARK, rounds=ONE_ROUND))

    result = grade(session)

    assert result.passed, result.message
    (told,) = lines(session)
    assert told.startswith("found [] 0")
    assert set(os.pread(session.builds.fd, session.builds.size, 0)) == {0}
    assert "rehearse" not in session.durations_s


@pytest.mark.parametrize(("mode", "benchmarks"), [(Mode.RANKED, TWO[:1]), (Mode.BENCHMARK, TWO)])
def test_what_is_tested_or_timed_twice_is_compiled_once(
    sit: Sit, mode: Mode, benchmarks: tuple[Workload, ...]
) -> None:
    task = make_sort_task(benchmarks=benchmarks, ranking_by=RankingBy.GEOM)
    session = sit(make_judging(KEEPING, mode, task=task, rounds=ONE_ROUND))

    assert grade(session).passed
    assert lines(session) == ["found []"] + ["found ['library']"] * len(benchmarks)


@pytest.mark.parametrize(
    ("source", "verdict", "stage"),
    [
        ("x = (", Verdict.BUILD_FAILED, Stage.BUILD),
        ("def custom_kernel(d): return d[1].zero_()", Verdict.WRONG_ANSWER, Stage.TIMING),
    ],
)
def test_one_round_without_tests_is_checked_as_any_other(
    sit: Sit, source: str, verdict: Verdict, stage: Stage
) -> None:
    result = grade(sit(make_judging(source, Mode.BENCHMARK, rounds=ONE_ROUND)))

    assert (result.verdict, result.stage) == (verdict, stage)


FALLING = """
import torch
def custom_kernel(data):
    if len(data[0]) == %d:
        raise ValueError("too large")
    return torch.sort(data[0]).values
"""


@pytest.mark.parametrize("mode", [Mode.RANKED, Mode.BENCHMARK])
def test_a_rehearsal_that_falls_is_the_failure_of_its_benchmark(sit: Sit, mode: Mode) -> None:
    task = make_sort_task(benchmarks=TWO, ranking_by=RankingBy.GEOM)
    session = sit(make_judging(FALLING % TWO[1].args["size"], mode, task=task))

    result = grade(session)

    assert (result.verdict, result.stage) == (Verdict.CRASHED, Stage.TIMING)
    assert "too large" in result.message
    timed = [case for case in result.cases if case.kind is CaseKind.BENCHMARK]
    assert [case.status for case in timed] == [CaseStatus.PASSED, CaseStatus.FAILED]
    assert timed[0].measurement is not None


def test_after_a_test_that_fell_nothing_is_rehearsed(sit: Sit) -> None:
    session = sit(make_judging(FALLING % 100, Mode.RANKED))

    result = grade(session)

    assert (result.verdict, result.stage) == (Verdict.CRASHED, Stage.TEST)
    assert "rehearse" not in session.durations_s


def test_a_build_that_fails_in_a_benchmark_run_is_made_once_and_times_nothing(sit: Sit) -> None:
    session = sit(make_judging("print('built'); x = (1,)[2]", Mode.BENCHMARK))

    result = grade(session)

    assert (result.verdict, result.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    assert [case.status for case in result.cases] == [CaseStatus.SKIPPED]
    assert lines(session).count("built") == 1


def test_the_time_of_a_rehearsal_is_the_time_of_the_benchmarks(sit: Sit) -> None:
    slow = SORTED.replace("    return", "    import time; time.sleep(1.5)\n    return")
    task = make_sort_task(tests=(), benchmark_timeout=1)

    result = grade(sit(make_judging(slow, Mode.BENCHMARK, task=task)))

    assert (result.verdict, result.stage) == (Verdict.TIMED_OUT, Stage.TIMING)


def test_on_a_gpu_the_first_candidate_has_room_for_the_largest_of_its_inputs(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sit(make_judging())
    sizes = {10: 7, 20: 5}
    monkeypatch.setattr(
        sessions, "planned", lambda data: Plan(ScalarNode(), 0, sizes[len(data[0])])
    )

    assert native._first_plan(session, TWO).device_size == 0  # it grows as it is written
    session.on_gpu = True
    assert native._first_plan(session, TWO).device_size == 7
    assert native._first_plan(session, ()).device_size == 0


def test_on_a_gpu_the_first_candidate_has_room_for_the_largest_of_its_outputs(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had room for twice its input and 64 MiB, so a task with a larger output was refused."""
    session = sit(make_judging())
    session.on_gpu = True
    sizes = {10: 1 << 30, 20: 5}
    monkeypatch.setattr(buffers, "device_bytes", lambda node: sizes[node.shape[0]])

    assert native._first_plan(session, TWO).output_size == 1 << 30


def test_a_reference_that_fails_is_reported_by_its_case_and_not_before(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sit(make_judging())
    session.on_gpu = True
    failed = MagicMock(side_effect=VerdictError(Verdict.TASK_ERROR, "ref_kernel failed"))
    monkeypatch.setattr(session.code, "expected", failed)
    assert native._first_plan(session, TWO).output_size == 0
    assert failed.call_count == 2

    failed.side_effect = OutOfTimeError(Verdict.TASK_ERROR, "the alarm rings once")
    with pytest.raises(OutOfTimeError):
        native._first_plan(session, TWO)


def test_an_argument_of_a_case_may_be_called_kernel(judge: Judge) -> None:
    """It named the reference or the judged kernel in every format, and broke the judge."""
    reference = SORT.replace("(size: int, seed: int)", "(size: int, kernel: int, seed: int)")
    case = Workload(args={"size": 100, "kernel": 3, "seed": 1})
    task = make_sort_task(reference, tests=(case,), benchmarks=(case,))

    assert judge(make_judging(mode=Mode.RANKED, task=task)).verdict is Verdict.PASSED
    assert judge(make_judging(mode=Mode.PROFILE, task=task)).verdict is Verdict.PASSED


FAILS_LATER = """
import os, pathlib, torch
mark = pathlib.Path.home() / ".builds" / "mark"
if mark.exists():
    if int(mark.read_text()) == 0:
        raise ImportError("in a later round")
else:
    mark.parent.mkdir(exist_ok=True)
    mark.write_text("0")
def custom_kernel(data):
    print("saw", float(data[0][0]))
    return torch.sort(data[0]).values
"""


def test_a_build_that_fails_in_a_later_round_tells_nothing_of_the_rounds_before(
    judge: Judge,
) -> None:
    found = judge(make_judging(FAILS_LATER, Mode.RANKED))

    assert (found.verdict, found.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    seen = disclosed(found)
    assert seen.message == "build_failed at benchmark 1 of the ranked run"
    assert not seen.log


HUNGRY = SORT.replace(
    "def ref_kernel(data):",
    """failures = iter(FAILURES)
def ref_kernel(data):
    if len(data[0]) == 20 and next(failures, False):
        raise torch.OutOfMemoryError("CUDA out of memory")""",
)


@pytest.mark.parametrize(
    ("failures", "verdict"),
    [("[True]", Verdict.MEMORY_EXCEEDED), ("[True] * 9", Verdict.TASK_ERROR)],
    ids=["beside candidates alone", "always"],
)
def test_task_code_without_memory_is_tried_again_without_candidates(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, failures: str, verdict: Verdict
) -> None:
    task = make_sort_task(HUNGRY.replace("FAILURES", failures), tests=TWO)
    session, alive = sit(make_judging(SORTED, task=task)), list[int]()
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (90, 100))
    attribute = EvaluationSession.attribute_lack_of_memory

    def attributed(session: EvaluationSession, result: GradingResult) -> None:
        alive.append(len(psutil.Process(session.template.pid).children()))
        monkeypatch.setattr(session, "on_gpu", True)
        attribute(session, result)

    monkeypatch.setattr(EvaluationSession, "attribute_lack_of_memory", attributed)
    result = grade(session)

    assert (result.verdict, result.stage, alive) == (verdict, Stage.TEST, [0])
    passed, failed = result.cases
    assert (passed.status, failed.status) == (CaseStatus.PASSED, CaseStatus.FAILED)
    assert failed.message == result.message
