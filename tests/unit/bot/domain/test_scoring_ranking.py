from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.scoring import Score, ScoreValue, indistinguishable, records, ties
from tests.doubles.factories import make_score, rank

fields = st.lists(
    st.tuples(st.integers(1, 12), st.floats(90, 110), st.floats(0, 4)), max_size=30
).map(lambda rows: [make_score(*row) for row in rows])


def places(*scores: Score) -> list[tuple[int, int]]:
    return [(standing.rank, standing.score.person) for standing in rank(scores)]


def test_fewer_nanoseconds_rank_first() -> None:
    assert places(make_score(1, 300), make_score(2, 100), make_score(3, 200)) == [
        (1, 2),
        (2, 3),
        (3, 1),
    ]


def test_nobody_has_no_standings() -> None:
    assert rank([]) == ()


def test_rank_shares_a_rank_between_equal_times_and_skips_the_next() -> None:
    assert places(make_score(1, 100), make_score(2, 100.4), make_score(3, 200)) == [
        (1, 1),
        (1, 2),
        (3, 3),
    ]


def test_the_interval_of_the_faster_one_decides() -> None:
    assert places(make_score(1, 100, 3), make_score(2, 103, 0.1)) == [(1, 1), (1, 2)]
    assert places(make_score(1, 100, 2.9), make_score(2, 103, 2.9)) == [(1, 1), (2, 2)]


def test_nobody_comes_to_a_rank_by_an_interval_of_his_own_that_is_wide() -> None:
    """As a kernel has that is slow in one round of many, on purpose."""
    assert places(make_score(1, 100, 0.1), make_score(2, 103, 30)) == [(1, 1), (2, 2)]


def test_two_times_are_alike_within_the_larger_interval_of_the_two() -> None:
    sharp, wide = (make_score(1, time, width).value for time, width in ((100, 0.1), (103, 3)))
    assert indistinguishable(sharp, wide)
    assert indistinguishable(wide, sharp)
    assert not indistinguishable(sharp, make_score(1, 103, 2.9).value)


def test_a_chain_of_near_times_does_not_pull_everyone_into_one_group() -> None:
    chain = [make_score(1, 100), make_score(2, 100.4), make_score(3, 100.8), make_score(4, 101.2)]
    assert places(*chain) == [(1, 1), (1, 2), (3, 3), (3, 4)]


def test_each_person_has_one_line_with_the_best_time_and_all_attempts() -> None:
    (standing,) = rank([make_score(1, 300), make_score(1, 100), make_score(1, 200)])
    assert (standing.score.value.time_ns, standing.attempts) == (100, 3)


def test_the_earlier_of_two_equal_scores_is_kept() -> None:
    early, late = make_score(1, 100), make_score(1, 100)
    assert rank([late, early])[0].score == early


@pytest.mark.parametrize("change", [{"gpu": "H100"}, {"task_version": 2}, {"board": 2}])
def test_scores_that_are_not_comparable_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not comparable"):
        rank([make_score(1, 100), make_score(2, 100, 0.0, **change)])


@given(fields, st.randoms(use_true_random=False))
def test_the_order_in_which_scores_arrive_does_not_matter(
    scores: list[Score], random: object
) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert rank(shuffled) == rank(scores)


@given(fields)
def test_ranks_grow_with_time_and_count_those_before(scores: list[Score]) -> None:
    standings = rank(scores)
    assert len(standings) == len({score.person for score in scores})
    assert sum(standing.attempts for standing in standings) == len(scores)
    for one, other in pairwise(standings):
        assert one.score.value.time_ns <= other.score.value.time_ns
        assert one.rank <= other.rank
    for place, standing in enumerate(standings, start=1):
        assert standing.rank <= place


@given(fields)
def test_an_entry_shares_a_rank_exactly_when_it_ties_with_the_group_s_first(
    scores: list[Score],
) -> None:
    first: ScoreValue | None = None
    for place, standing in enumerate(rank(scores), start=1):
        joined = first is not None and ties(first, standing.score.value)
        assert (standing.rank != place) == joined
        if not joined:
            first = standing.score.value


def test_records_are_the_scores_that_were_fastest_when_they_came() -> None:
    first, slower, equal, faster = (make_score(1, time) for time in (300, 400, 300, 200))
    assert records([faster, equal, slower, first]) == (first, faster)
    assert records([]) == ()
