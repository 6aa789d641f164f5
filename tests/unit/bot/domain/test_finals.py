import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.finals import Final, Pair, final_places, final_rows, final_standings, next_pair
from bot.domain.ids import BoardId, FinalId, SubmissionId, TaskVersionId
from bot.domain.scoring import PairRatio
from tests.doubles.factories import NOON, make_score


def played(
    entries: list[SubmissionId], ratio: dict[SubmissionId, float]
) -> tuple[tuple[SubmissionId, ...], dict[Pair, PairRatio | None]]:
    """The final order and the comparisons, when each entry truly takes this time."""
    results: dict[Pair, PairRatio | None] = {}
    while True:
        order, pair = next_pair(entries, results)
        if pair is None:
            return order, results
        assert pair not in results
        results[pair] = PairRatio(ratio[pair[0]] / ratio[pair[1]], 1e-6)


@given(st.permutations(range(1, 9)))
def test_the_final_order_is_by_the_true_times_and_all_neighbours_have_met(
    order: list[int],
) -> None:
    entries = [SubmissionId(each) for each in order]
    truth = {each: float(each) for each in entries}
    found, results = played(entries, truth)
    assert list(found) == sorted(entries)
    for pair in itertools.pairwise(found):
        assert pair in results or pair[::-1] in results
    assert len(results) <= len(entries) * (len(entries) - 1) // 2


def test_an_order_that_is_right_takes_one_comparison_for_each_neighbour() -> None:
    entries = [SubmissionId(each) for each in range(1, 11)]
    _, results = played(entries, {each: float(each) for each in entries})
    assert len(results) == 9


def test_times_follow_from_the_ratios_and_the_best_stays_as_it_was() -> None:
    scores = [make_score(1, 100), make_score(2, 101), make_score(3, 130)]
    by_submission = {each.submission: each for each in scores}
    one, two, three = (each.submission for each in scores)
    results: dict[Pair, PairRatio | None] = {
        (two, one): PairRatio(0.98, 0.002),
        (three, one): PairRatio(1.2, 0.003),
    }
    order, pair = next_pair([one, two, three], results)
    assert (order, pair) == ((two, one, three), None)
    places = final_places(by_submission, order, results)
    times = [each.score.value.time_ns for each in places]
    assert times == pytest.approx([98, 100, 120])
    rows = final_rows(final_standings(places, results, ()), places)
    assert [each.rank for each in rows] == [1, 2, 3]
    assert rows[1].ratio is not None
    assert rows[1].ratio.ratio == pytest.approx(1 / 0.98)


def test_who_cannot_be_told_apart_or_compared_shares_the_place() -> None:
    scores = [make_score(1, 100), make_score(2, 100.1), make_score(3, 100.2)]
    one, two, three = (each.submission for each in scores)
    results: dict[Pair, PairRatio | None] = {
        (two, one): PairRatio(0.999, 0.002),
        (three, two): None,
    }
    order, _ = next_pair([one, two, three], results)
    places = final_places({each.submission: each for each in scores}, order, results)
    standings = final_standings(places, results, ())
    assert [each.rank for each in final_rows(standings, places)] == [1, 1, 1]
    times = [each.score.value.time_ns for each in places]
    assert times == sorted(times)


def test_nobody_is_left_when_all_entries_are_gone() -> None:
    assert next_pair([], {}) == ((), None)
    assert final_places({}, (), {}) == ()


def test_what_is_left_of_a_final() -> None:
    final = Final(FinalId(1), BoardId(1), TaskVersionId(1), "CPU", 10, NOON)
    assert final.left == 0
    entries = tuple(map(SubmissionId, range(4)))
    started = Final(FinalId(1), BoardId(1), TaskVersionId(1), "CPU", 10, NOON, entries, compared=1)
    assert started.left == 2
