from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.confirmation import (
    Confirmation,
    ConfirmationState,
    Reading,
    can_confirm,
    combined,
    contest,
    in_turn,
    level,
    limited,
    read,
    scaled,
    settled,
    state_of,
)
from bot.domain.ids import ConfirmationId, PersonId, SubmissionId, TaskVersionId
from bot.domain.scoring import Entrant, PairRatio, Score, ScoreValue, entrants, rank_entrants
from runners.contract.comparison import Comparison, Ratio
from runners.contract.evaluation import CaseKind
from runners.contract.task import Grader, RankingBy, TaskFormat
from runners.contract.verdict import Verdict
from tests.doubles.factories import (
    NOON,
    make_case,
    make_evaluation,
    make_measurement,
    make_score,
    make_task,
)


def board(*times: float) -> list[Entrant]:
    """People 1, 2, ... with these times, which can be told apart exactly."""
    return [Entrant(make_score(each, time), 1) for each, time in enumerate(times, start=1)]


def holder(new: Score, others: list[Entrant], earlier: Score | None = None) -> tuple[int, int]:
    """The place that is contested, and whose it is; zeros for none."""
    found = contest(new, others, earlier)
    return (0, 0) if found is None else (found.place, found.holder.person)


@pytest.mark.parametrize(
    ("time_ns", "met"),
    [
        (50, (1, 1)),
        (100.2, (1, 1)),  # level with the first
        (150, (2, 2)),
        (250, (3, 3)),
        (350, (0, 0)),  # the fourth place
        (950, (0, 0)),  # a place that nobody holds
    ],
)
def test_a_new_person_meets_the_holder_of_the_place(time_ns: float, met: tuple[int, int]) -> None:
    others = board(100, 200, 300, 400)
    assert holder(make_score(9, time_ns), others) == met


def test_the_first_run_and_ones_own_better_time_displace_nobody() -> None:
    assert holder(make_score(9, 100), []) == (0, 0)
    assert holder(make_score(9, 90), board(200), make_score(9, 100)) == (0, 0)
    assert holder(make_score(9, 100), board(200), make_score(9, 90)) == (0, 0)


def test_a_shared_place_that_becomes_ones_own_is_contested() -> None:
    earlier, others = make_score(9, 100), board(100.1, 300)
    assert holder(make_score(9, 50), others, earlier) == (1, 1)
    assert holder(make_score(9, 99.9), others, earlier) == (0, 0)  # still level


def test_who_was_compared_is_not_compared_again() -> None:
    others = board(100, 200, 300)
    new = make_score(9, 90)
    assert contest(new, others, None, {others[0].best.submission}) is None
    # It was slower than the first, and now takes the second place from somebody else.
    behind = make_score(9, 150)
    found = contest(behind, others, None, {others[0].best.submission})
    assert found is not None
    assert found.holder.person == 2


times = st.floats(10, 1e6).map(lambda time: round(time, 2))


@given(st.lists(times, max_size=8), times)
def test_everyone_who_loses_a_place_is_met_or_behind_the_one_who_is(
    others: list[float], time_ns: float
) -> None:
    held, new = board(*others), make_score(99, time_ns)
    before = {each.score.person: each.rank for each in rank_entrants(held)}
    after = rank_entrants([*held, Entrant(new, 1)])
    lost = [
        each.score.person
        for each in after
        if before.get(each.score.person, 99) <= 3 and each.rank > before[each.score.person]
    ]
    found = contest(new, held, None)
    if lost:
        assert found is not None
        assert before[found.holder.person] <= min(before[each] for each in lost)


@pytest.mark.parametrize(
    ("ratio", "half_width", "state"),
    [
        (0.99, 0.002, ConfirmationState.CONFIRMED),
        (0.999, 0.002, ConfirmationState.TIED),
        (1.0019, 0.002, ConfirmationState.TIED),
        (1.01, 0.002, ConfirmationState.SLOWER),
    ],
)
def test_the_interval_of_the_ratio_decides(
    ratio: float, half_width: float, state: ConfirmationState
) -> None:
    pair = PairRatio(ratio, half_width)
    assert state_of(pair) is state
    # The ranks say the same, however much the judge's clock cannot see of both times.
    rival = make_score(1, 0, value=ScoreValue(10_000, 500, 2_000))
    value = scaled(rival.value, pair, ScoreValue(9_000, 1, 2_000, 4_000))
    assert value.claimed_ns == 4_000
    new = make_score(2, 0, value=value, met=((rival.submission, pair),))
    ranks = {int(each.score.person): each.rank for each in rank_entrants(entrants([rival, new]))}
    tied, first = ranks[1] == ranks[2], ranks[2] < ranks[1]
    assert tied is (state is ConfirmationState.TIED)
    assert first is (state is ConfirmationState.CONFIRMED)


def test_what_the_clock_may_miss_of_a_run_does_not_shrink_with_its_ratio() -> None:
    """Hidden work made a run look faster, and what could be hidden shrank by the same factor."""
    value = scaled(ScoreValue(180, 5, 128), PairRatio(0.3, 0.1), ScoreValue(53, 5, 120))
    assert (value.time_ns, value.resolution_ns) == (54, 120)


def test_a_chain_of_comparisons_decides_between_its_ends() -> None:
    blurred = [make_score(each, 0, value=ScoreValue(1_000, 0, 900)) for each in (1, 2, 3)]
    met = [(), *(((each.submission, PairRatio(1.01, 0.002)),) for each in blurred)]
    scores = [replace(each, met=pair) for each, pair in zip(blurred, met, strict=False)]
    ranks = {int(each.score.person): each.rank for each in rank_entrants(entrants(scores))}
    assert ranks == {1: 1, 2: 2, 3: 3}


@pytest.mark.parametrize(
    ("ranking_by", "ratio"),
    [
        (RankingBy.GEOM, (0.5 * 2.0) ** 0.5),
        (RankingBy.LAST, 2.0),
        (RankingBy.MEAN, (0.5 * 101 + 2.0 * 301) / 402),
    ],
)
def test_ratios_are_combined_as_the_task_combines_times(
    ranking_by: RankingBy, ratio: float
) -> None:
    task = make_task(ranking_by=ranking_by)
    cases = [
        make_case(CaseKind.BENCHMARK, spec=f"size: {time}", measurement=make_measurement(time, 0))
        for time in (100.0, 300.0)
    ]
    found = combined(
        task,
        make_evaluation(cases=tuple(cases)),
        (Ratio(ratio=0.5, half_width=0, rounds=5), Ratio(ratio=2.0, half_width=0, rounds=5)),
    )
    assert found.ratio == pytest.approx(ratio)


def test_what_can_be_hidden_in_each_benchmark_adds_up_and_noise_does_not() -> None:
    cases = [
        make_case(CaseKind.BENCHMARK, spec=f"size: {n}", measurement=make_measurement(100, 0))
        for n in range(2)
    ]
    task, measured = make_task(ranking_by=RankingBy.GEOM), make_evaluation(cases=tuple(cases))
    for unseen, half_width in ((0.0, 0.3 / 2**0.5), (0.3, 0.3)):
        ratio = Ratio(ratio=1.0, half_width=0.3, unseen=unseen, rounds=5)
        found = combined(task, measured, (ratio, ratio))
        assert found.half_width == pytest.approx(half_width)


def test_several_comparisons_count_with_the_slowest_and_none_displaces_nobody() -> None:
    held, found = ScoreValue(100, 1), ScoreValue(90, 2)
    assert settled(held, found, again=False) == found
    assert settled(held, found, again=True) == held
    assert level(ScoreValue(90, 1), ScoreValue(100, 5)) == ScoreValue(104, 1)
    assert level(ScoreValue(106, 1), ScoreValue(100, 5)) == ScoreValue(106, 1)


def test_a_task_whose_own_program_takes_the_times_confirms_nothing() -> None:
    assert can_confirm(make_task())
    assert not can_confirm(make_task().model_copy(update={"grader": Grader.POPCORN}))
    assert not can_confirm(make_task().model_copy(update={"format": TaskFormat.IO_CONTRACT}))


RATIO = Ratio(ratio=1.0, half_width=0.1, rounds=5)


@pytest.mark.parametrize(
    ("comparison", "reading"),
    [
        (None, Reading.NOT_MADE),
        (Comparison(benchmarks=(RATIO,), rival_verdict=Verdict.PASSED), Reading.MADE),
        (Comparison(benchmarks=(RATIO, RATIO), rival_verdict=Verdict.PASSED), Reading.NOT_MADE),
        (Comparison(rival_verdict=Verdict.PASSED), Reading.NOT_MADE),
        (Comparison(rival_verdict=Verdict.CRASHED), Reading.RIVAL_FAILED),
        (Comparison(rival_verdict=Verdict.TASK_ERROR), Reading.NOT_MADE),
    ],
)
def test_what_a_run_has_shown(comparison: Comparison | None, reading: Reading) -> None:
    evaluation = make_evaluation().model_copy(update={"comparison": comparison})
    assert read(make_task(), evaluation) is reading


def test_a_run_that_failed_or_was_lost_has_shown_that() -> None:
    assert read(make_task(), None) is Reading.NOT_MADE
    assert read(make_task(), make_evaluation(verdict=Verdict.CRASHED)) is Reading.FAILED
    broken = make_evaluation(verdict=Verdict.TASK_ERROR)
    assert read(make_task(), broken) is Reading.NOT_MADE


def test_who_shares_the_place_of_the_one_that_was_met_is_met_if_the_run_would_pass_it() -> None:
    others = board(100, 100.2, 300)
    first, second, _ = (each.best for each in others)
    faster = make_score(9, 99.9, met=((first.submission, PairRatio(0.99, 0.001)),))
    linked = Entrant(replace(second, met=((first.submission, PairRatio(1.0, 0.001)),)), 1)
    found = contest(faster, [others[0], linked, others[2]], None, {first.submission})
    assert found is not None
    assert found.holder.person == second.person
    tied = replace(faster, met=((first.submission, PairRatio(0.999, 0.002)),))
    assert contest(tied, [others[0], linked, others[2]], None, {first.submission}) is None


def test_a_ratio_alone_does_not_put_a_run_far_ahead_of_everybody() -> None:
    value = ScoreValue(10, 1)
    assert limited(value, 99.9, None) == value
    assert limited(value, 99.9, 100) == ScoreValue(98, 9.8)
    assert limited(value, 12, 100) == ScoreValue(12, 1.2)  # it was measured so fast itself
    assert limited(ScoreValue(101, 1), 99, 100) == ScoreValue(101, 1)


def test_a_person_with_fewer_runs_that_wait_is_compared_first() -> None:
    def waiting(number: int, person: int, time_ns: float) -> Confirmation:
        return Confirmation(
            ConfirmationId(number),
            SubmissionId(number),
            PersonId(person),
            "",
            TaskVersionId(1),
            "CPU",
            1,
            ConfirmationState.PENDING,
            NOON,
            held=ScoreValue(time_ns, 0),
        )

    found = [waiting(1, 7, 99), waiting(2, 7, 97), waiting(3, 8, 98), waiting(4, 9, 50)]
    assert [each.id for each in in_turn(found)] == [3, 4, 2, 1]
