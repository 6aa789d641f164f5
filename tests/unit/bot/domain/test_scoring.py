import math
import random
from statistics import geometric_mean, mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.scoring import (
    Outcome,
    PairRatio,
    ScoreValue,
    combine,
    counted,
    judged,
    mismatch,
    score,
)
from runners.contract.comparison import Comparison
from runners.contract.evaluation import RANKED_ROUNDS, CaseKind, Evaluation, Measurement, StopReason
from runners.contract.task import Mode, RankingBy, Workload
from runners.contract.verdict import Verdict
from runners.harness.timing.intervals import rounds_interval
from tests.doubles.factories import (
    make_case,
    make_evaluation,
    make_measurement,
    make_request,
    make_task,
)


def timed(*times: tuple[float, float], **changes: object) -> Evaluation:
    cases = [make_case()]
    cases += [
        make_case(CaseKind.BENCHMARK, spec=f"size: {index}", measurement=make_measurement(*time))
        for index, time in enumerate(times)
    ]
    return make_evaluation(cases=tuple(cases), **changes)


def test_last_takes_the_last_benchmark() -> None:
    task = make_task(ranking_by=RankingBy.LAST)
    assert score(task, timed((10, 1), (40, 2))) == ScoreValue(40, 2, 1)


def test_mean_adds_independent_half_widths_in_quadrature() -> None:
    task = make_task(ranking_by=RankingBy.MEAN)
    assert score(task, timed((10, 3), (30, 4))) == ScoreValue(20, 2.5, 1)


def test_geom_combines_relative_half_widths() -> None:
    value = score(make_task(ranking_by=RankingBy.GEOM), timed((10, 0.3), (1000, 40)))
    assert value is not None
    assert value.time_ns == pytest.approx(100)
    assert value.half_width_ns == pytest.approx(100 * math.hypot(0.03, 0.04) / 2)
    assert value.resolution_ns == pytest.approx(100 * (1 / 10 + 1 / 1000) / 2)


def test_a_workload_below_its_floor_counts_as_its_floor() -> None:
    sizes = tuple(Workload(args={"size": size}) for size in (0, 67_000))
    task = make_task(ranking_by=RankingBy.MEAN, bytes="size", benchmarks=sizes)  # 20 ns on an H100
    cases = [
        make_case(CaseKind.BENCHMARK, spec=each.spec, measurement=make_measurement(10, 0))
        for each in sizes
    ]
    found = make_evaluation(cases=tuple(cases), gpu="H100")
    assert score(task, found) == ScoreValue(15, 0, 1)


@pytest.mark.parametrize("mode", [Mode.TEST, Mode.BENCHMARK, Mode.PROFILE])
def test_only_ranked_evaluations_score(mode: Mode) -> None:
    assert score(make_task(), timed((10, 1), mode=mode)) is None


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.PASSED])
def test_only_passed_evaluations_score(verdict: Verdict) -> None:
    assert score(make_task(), make_evaluation(verdict=verdict)) is None


def test_an_evaluation_without_times_has_no_score() -> None:
    assert score(make_task(), make_evaluation(cases=(make_case(),))) is None


times = st.tuples(
    st.floats(min_value=0, exclude_min=True, allow_infinity=False),
    st.floats(min_value=0, allow_infinity=False),
)


@given(st.lists(times, min_size=1, max_size=8), st.sampled_from(RankingBy))
def test_a_score_is_never_zero_negative_or_unbounded(
    measured: list[tuple[float, float]], ranking_by: RankingBy
) -> None:
    value = score(make_task(ranking_by=ranking_by), timed(*measured))
    if value is not None:
        assert 0 < value.time_ns < math.inf
        assert 0 <= value.half_width_ns < math.inf


@given(st.lists(st.tuples(st.floats(1, 1e12), st.floats(0, 1e9)), min_size=1, max_size=8))
def test_a_combined_time_lies_between_the_fastest_and_the_slowest(
    measured: list[tuple[float, float]],
) -> None:
    for ranking_by in RankingBy:
        value = score(make_task(ranking_by=ranking_by), timed(*measured), ranked=False)
        assert value is not None
        slack = 1e-9 * value.time_ns
        assert min(measured)[0] - slack <= value.time_ns <= max(measured)[0] + slack


def test_an_answer_to_the_request_fits_it() -> None:
    request = make_request(mode=Mode.RANKED)
    assert mismatch(request, timed((10, 1))) is None


def test_a_ranked_run_by_the_last_benchmark_need_not_time_the_others() -> None:
    sizes = (Workload(args={"size": 1}), Workload(args={"size": 2}))
    task = make_task(benchmarks=sizes, ranking_by=RankingBy.LAST)
    assert mismatch(make_request(mode=Mode.RANKED, task=task), timed((10, 1))) is None


def test_a_ranked_run_that_did_not_pass_need_not_have_timed_anything() -> None:
    wrong = make_evaluation(verdict=Verdict.WRONG_ANSWER)
    assert mismatch(make_request(mode=Mode.RANKED), wrong) is None


@pytest.mark.parametrize(
    ("rival", "verdict", "fits"),
    [
        ("def custom_kernel(data): ...", Verdict.WRONG_ANSWER, True),
        ("def custom_kernel(data): ...", Verdict.PASSED, False),
        (None, Verdict.WRONG_ANSWER, False),
    ],
)
def test_nothing_need_be_timed_if_the_rivals_answer_ended_the_evaluation(
    rival: str | None, verdict: Verdict, *, fits: bool
) -> None:
    """A holder whose answer crashed the check could not be displaced: no answer fitted."""
    request = make_request(mode=Mode.RANKED).model_copy(update={"rival": rival})
    ended = make_evaluation(cases=(), comparison=Comparison(rival_verdict=verdict))
    assert (mismatch(request, ended) is None) is fits


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"request_id": "job-2"}, "request_id"),
        ({"gpu": "H100"}, "gpu"),
        ({"mode": Mode.TEST}, "mode"),
        ({"task": "sort"}, "task"),
        ({"cases": (make_case(),)}, "asked for 1 benchmarks, the runner timed 0"),
    ],
)
def test_an_answer_to_another_request_is_told(changes: dict[str, object], part: str) -> None:
    found = mismatch(make_request(mode=Mode.RANKED), make_evaluation(**changes))
    assert found is not None
    assert part in found


def cut_short(rounds: tuple[tuple[float, ...], ...], time_ns: float, half: float) -> Measurement:
    """What was measured when the time limit came near."""
    return make_measurement(time_ns, half).model_copy(
        update={"stop_reason": StopReason.TIME_CAP, "rounds": len(rounds), "samples": rounds}
    )


@pytest.mark.parametrize(
    "measured",
    [
        cut_short(((10, 11, 30), (9, 12, 8)), 10, 4),
        cut_short(((9, 9, 9),) * 4, 10, 4),
        cut_short(((9, 9, 9),), 10, 4),
        cut_short(((9, 9, 9),), 10, 4).model_copy(update={"stop_reason": StopReason.ROUND_CAP}),
        cut_short((), 10, 4).model_copy(update={"claimed_ns": 2.0, "time_ns": 2.0}),
    ],
    ids=["two rounds", "four rounds", "one round", "one round allowed", "a claim"],
)
def test_a_run_that_ended_early_counts_by_the_upper_end_of_its_interval(
    measured: Measurement,
) -> None:
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    counts = ScoreValue(15, 4, 1.0, measured.claimed_ns)
    assert score(make_task(), make_evaluation(cases=(case,))) == counts


def test_a_run_of_a_slow_kernel_counts_by_the_upper_end_of_its_interval() -> None:
    measured = cut_short(((10, 11, 30), (9, 12, 8)), 10, 4).model_copy(
        update={"stop_reason": StopReason.SLOW}
    )
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    assert score(make_task(), make_evaluation(cases=(case,))) == ScoreValue(15, 4, 1)


@pytest.mark.parametrize(
    "changes", [{"stop_reason": StopReason.ROUND_CAP}, {"samples": ((9, 10, 11),) * 5, "rounds": 5}]
)
def test_a_run_of_enough_rounds_counts_by_its_mean(changes: dict[str, object]) -> None:
    measured = cut_short(((10, 11, 30), (9, 12, 8)), 10, 4).model_copy(update=changes)
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    assert score(make_task(), make_evaluation(cases=(case,))) == ScoreValue(10, 4, 1)


def test_trying_again_with_few_rounds_gains_no_more_than_with_the_least_there_should_be() -> None:
    """Best of fifty: what luck takes off the time of a kernel whose rounds differ by 5 %."""
    draw = random.Random(4)  # noqa: S311 - the same luck each time

    def luck(rounds: int) -> float:
        def one() -> float:
            medians = [draw.lognormvariate(0, 0.05) for _ in range(rounds)]
            interval = rounds_interval([[each] for each in medians])
            measured = cut_short(
                tuple((each,) for each in medians), geometric_mean(medians), interval.half_width
            )
            return counted(measured).time_ns

        return mean(min(one() for _ in range(50)) for _ in range(200))

    fair = luck(RANKED_ROUNDS.looks[0])
    assert all(luck(rounds) > 0.99 * fair for rounds in range(2, RANKED_ROUNDS.looks[0]))


@pytest.mark.parametrize(("ratio", "half_width"), [(2.0, 1.2), (0.5, 0.6), (1.01, 0.02)])
def test_of_two_that_tie_neither_is_faster_by_the_inverse_ratio(
    ratio: float, half_width: float
) -> None:
    pair = PairRatio(ratio, half_width)
    assert (pair.outcome, pair.inverse.outcome) == (Outcome.TIED, Outcome.TIED)
    assert PairRatio(ratio, 0.005).inverse.outcome is not PairRatio(ratio, 0.005).outcome


LIE = {"claimed_ns": 2_800.0, "time_ns": 2_800.0, "bound_ns": 5_870.0, "resolution_ns": 4_140.0}


def measured(**changes: object) -> Measurement:
    return make_measurement().model_copy(update={"half_width_ns": 20.0, "rounds": 5, **changes})


def test_the_judges_own_value_counts_and_not_the_claim() -> None:
    assert judged(measured(**LIE)) == ScoreValue(5_870, 20, 4_140, 2_800)


def test_without_a_claim_the_larger_of_time_and_bound_counts() -> None:
    """Such as the claims of a worker so old that it does not say that they are claims."""
    windows = measured(time_ns=9_000.0, bound_ns=5_000.0, resolution_ns=4_000.0)
    assert judged(windows) == ScoreValue(9_000, 20, 4_000)
    old = measured(time_ns=2_800.0, bound_ns=5_870.0, resolution_ns=4_140.0)
    assert judged(old) == ScoreValue(5_870, 20, 4_140)


@pytest.mark.parametrize(
    "changes",
    [{"stop_reason": StopReason.TASK}, {"bound_ns": 0.0}],
    ids=["the task's own evaluation", "no bound"],
)
def test_what_no_clock_of_the_judge_has_seen_is_unconfirmed(changes: dict[str, object]) -> None:
    found = judged(measured(**(LIE | changes)))
    assert (found, found.confirmed) == (ScoreValue(2_800, 20, None), False)
    assert counted(measured(**(LIE | changes), rounds=1)).time_ns == 2_800


@pytest.mark.parametrize("ranking_by", [RankingBy.MEAN, RankingBy.GEOM])
def test_a_score_is_confirmed_and_claimed_only_if_each_case_is(ranking_by: RankingBy) -> None:
    claimed, unclaimed = ScoreValue(4, 1, 2, 4), ScoreValue(4, 1, 2)
    assert combine(ranking_by, [claimed, claimed]).claimed_ns == 4
    assert combine(ranking_by, [claimed, unclaimed]).claimed_ns is None
    assert combine(ranking_by, [claimed, claimed]).resolution_ns == 2
    assert combine(ranking_by, [claimed, ScoreValue(4, 1, None)]).resolution_ns is None
