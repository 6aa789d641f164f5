"""A ranked run with a rival, graded by real candidates: both are judged, and then compared."""

import signal
import time

import pytest

from runners.contract.evaluation import CaseStatus, Evaluation, RoundPolicy
from runners.contract.task import Mode, RankingBy, TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.graders import native
from runners.harness.server import _out_of_time
from runners.harness.verdicts import VerdictError
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Judge, judge, progress, template
from tests.unit.runners.harness.judged import ACCEPTED

__all__ = ["judge", "progress", "template"]
TWO = tuple(Workload(args={"size": size, "seed": 1}) for size in (10_000, 20_000))
PRINTING = SORTED.replace("    return", "    print('of the rival')\n    return")
ROUNDS = RoundPolicy(looks=(2,), samples=3)


def compared(
    judge: Judge, source: str, rival: str, task: TaskDefinition | None = None
) -> Evaluation:
    request = make_judging(
        source, Mode.RANKED, task=task or make_sort_task(), rival=rival, rounds=ROUNDS
    )
    return judge(request)


def test_every_benchmark_has_its_ratio(judge: Judge) -> None:
    found = compared(
        judge, SORTED, PRINTING, make_sort_task(benchmarks=TWO, ranking_by=RankingBy.GEOM)
    )

    assert found.verdict is Verdict.PASSED, found.message
    assert found.comparison is not None
    assert found.comparison.rival_verdict is Verdict.PASSED
    assert [each.rounds for each in found.comparison.benchmarks] == [2, 2]
    assert [case.measurement and case.measurement.rounds for case in found.cases[1:]] == [2, 2]
    assert "of the rival" not in found.log


@pytest.mark.parametrize(("source", "task"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted_can_be_compared(judge: Judge, source: str, task: TaskDefinition) -> None:
    same_arguments = task.model_copy(update={"benchmarks": task.tests})
    found = compared(judge, source, source, same_arguments)

    assert found.verdict is Verdict.PASSED, found.message
    assert found.comparison is not None
    assert len(found.comparison.benchmarks) == 1


@pytest.mark.parametrize(
    ("rival", "verdict", "detail"),
    [
        ("x = (", Verdict.BUILD_FAILED, "was never closed"),
        ("def custom_kernel(d): return d[1].zero_()", Verdict.WRONG_ANSWER, "mismatch"),
        (
            SORTED.replace("    return", "    if len(data[0]) > 100: raise ValueError\n    return"),
            Verdict.CRASHED,
            "ValueError",
        ),
    ],
)
def test_a_rival_that_fails_is_told_and_the_submission_is_judged_all_the_same(
    judge: Judge, rival: str, verdict: Verdict, detail: str
) -> None:
    found = compared(judge, SORTED, rival)

    assert found.verdict is Verdict.PASSED, found.message
    assert found.comparison is not None
    assert (found.comparison.rival_verdict, found.comparison.benchmarks) == (verdict, ())
    assert detail in found.comparison.rival_detail
    assert found.cases[-1].measurement is not None


def test_a_submission_that_fails_has_its_own_verdict_and_blames_nobody(judge: Judge) -> None:
    for source, stage in (
        ("x = (", Stage.BUILD),
        (SORTED.replace("return", "return 1,"), Stage.TEST),
    ):
        found = compared(judge, source, SORTED)

        assert found.verdict is not Verdict.PASSED
        assert found.stage is stage
        assert found.comparison is not None
        assert (found.comparison.rival_verdict, found.comparison.benchmarks) == (Verdict.PASSED, ())


def test_a_submission_that_fails_in_a_later_benchmark_has_no_ratio(judge: Judge) -> None:
    failing = SORTED.replace("def", "calls = []\ndef").replace(
        "    return",
        "    calls.append(len(data[0]))\n"
        "    if calls.count(20_000) == 5: return data[1]\n    return",
    )
    found = compared(
        judge, failing, SORTED, make_sort_task(benchmarks=TWO, ranking_by=RankingBy.GEOM)
    )

    assert found.verdict is Verdict.WRONG_ANSWER
    assert [case.status for case in found.cases[1:]] == [CaseStatus.PASSED, CaseStatus.FAILED]
    assert found.comparison is not None
    assert found.comparison.benchmarks == ()


def test_time_that_the_rival_needs_to_build_is_not_the_submissions(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    budgets: list[float] = []
    first_candidate, compare = native._first_candidate, native._compare

    def slow_rival(session, result, tests, timed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        first_candidate(session, result, tests, timed)
        if session.request.source == PRINTING:
            time.sleep(1.0)

    def spied(timer, timed, rival, report):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        budgets.extend((timed.deadline.remaining, rival.deadline.remaining))
        return compare(timer, timed, rival, report)

    monkeypatch.setattr(native, "_first_candidate", slow_rival)
    monkeypatch.setattr(native, "_compare", spied)

    compared(judge, SORTED, PRINTING, make_sort_task(ranked_timeout=20))

    ours, theirs = budgets
    assert ours > 19.0
    assert theirs < 19.5


@pytest.mark.parametrize("tested", [True, False], ids=["test", "timed"])
def test_a_check_of_the_rivals_answer_that_does_not_end_takes_no_time_from_the_submission(
    judge: Judge, *, tested: bool
) -> None:
    """A holder with such answers could not be displaced: the submission timed out."""
    endless = SORT.replace("    right =", "    while output[0] == 7: pass\n    right =")
    task = make_sort_task(endless, test_timeout=3, ranked_timeout=3, benchmark_timeout=3)
    least = 0 if tested else 200  # numbers; the test has 100
    wrong = f"    if len(data[0]) > {least}: return torch.full_like(data[0], 7)\n    return"
    rival = SORTED.replace("    return", wrong)
    ringing = signal.signal(signal.SIGALRM, _out_of_time)
    signal.setitimer(signal.ITIMER_REAL, 60)
    begin = time.monotonic()
    try:
        found = compared(judge, SORTED, rival, task)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, ringing)

    assert (found.verdict, found.comparison is None) == (Verdict.PASSED, False), found.message
    assert found.comparison is not None
    assert found.comparison.rival_verdict is Verdict.TIMED_OUT, found.comparison.rival_detail
    assert time.monotonic() - begin < 30


def test_an_error_before_the_rivals_first_candidate_is_the_rivals(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_candidate = native._first_candidate

    def failing(session, result, tests, timed):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if session.request.source == PRINTING:
            raise VerdictError(Verdict.TIMED_OUT, "too late")
        first_candidate(session, result, tests, timed)

    monkeypatch.setattr(native, "_first_candidate", failing)

    found = compared(judge, SORTED, PRINTING)

    assert found.verdict is Verdict.PASSED
    assert found.comparison is not None
    assert found.comparison.rival_verdict is Verdict.TIMED_OUT
