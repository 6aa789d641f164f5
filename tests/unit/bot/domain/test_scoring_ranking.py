from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.scoring import Score, ScoreValue, is_ahead, records
from tests.doubles.factories import make_score, rank

fields = st.lists(
    st.tuples(st.integers(1, 12), st.floats(90, 110), st.floats(0, 12)), max_size=30
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


def test_rank_shares_a_rank_between_near_times_and_skips_the_next() -> None:
    assert places(make_score(1, 100), make_score(2, 100.4), make_score(3, 200)) == [
        (1, 1),
        (1, 2),
        (3, 3),
    ]


def judged(person: int, time_ns: float, resolution_ns: float, claimed_ns: float) -> Score:
    """A score with the judge's own value, and what the submission claims."""
    return make_score(person, 1, value=ScoreValue(time_ns, 0.0, resolution_ns, claimed_ns))


@pytest.mark.parametrize(("resolution_ns", "place"), [(4_140, (1, 2)), (900, (2, 2))])
def test_a_liar_does_not_rank_before_an_honest_one(
    resolution_ns: float, place: tuple[int, int]
) -> None:
    honest = judged(1, 5_800, resolution_ns, 5_800)
    liar = judged(2, 5_870, 4_140, 2_800)
    assert places(liar, honest) == [(1, 1), place]


def test_the_resolution_of_the_faster_one_decides_between_intervals_of_one_width() -> None:
    assert places(make_score(1, 100, 3), make_score(2, 103, 3)) == [(1, 1), (1, 2)]
    assert places(make_score(1, 100, 2.9), make_score(2, 103, 2.9)) == [(1, 1), (2, 2)]
    seen = [make_score(who, 1, value=ScoreValue(time, 1, 2)) for who, time in ((1, 100), (2, 103))]
    assert places(*seen) == [(1, 1), (1, 2)]


def test_a_wide_interval_counts_no_better_than_its_upper_end_against_a_narrow_one() -> None:
    """As a kernel has that is slow in one round of many, on purpose."""
    assert places(make_score(1, 100, 0.1), make_score(2, 99, 30)) == [(1, 1), (2, 2)]
    assert places(make_score(1, 100, 3), make_score(2, 103, 0.1)) == [(1, 1), (1, 2)]


def test_a_chain_of_near_times_does_not_pull_everyone_into_one_group() -> None:
    """The third is certainly behind the first, and the fourth behind the first two."""
    chain = [make_score(1, 100), make_score(2, 100.4), make_score(3, 100.8), make_score(4, 101.2)]
    assert places(*chain) == [(1, 1), (1, 2), (2, 3), (3, 4)]


def test_who_shares_a_rank_is_listed_by_the_time() -> None:
    assert places(make_score(1, 100, 5), make_score(2, 101, 4)) == [(1, 1), (1, 2)]


def test_of_a_persons_scores_the_one_with_the_lowest_upper_end_counts() -> None:
    (standing,) = rank([make_score(1, 99, 30), make_score(1, 100, 1)])
    assert standing.score.value == ScoreValue(100, 1)


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
def test_a_rank_is_one_more_than_the_number_of_people_who_are_ahead(scores: list[Score]) -> None:
    standings = rank(scores)
    assert len(standings) == len({score.person for score in scores})
    assert sum(standing.attempts for standing in standings) == len(scores)
    for each in standings:
        ahead = [other for other in standings if is_ahead(other.score.value, each.score.value)]
        assert each.rank == 1 + len(ahead)
        assert all(other.rank < each.rank for other in ahead)
    for one, other in pairwise(standings):
        assert (one.rank, one.score.value.time_ns) <= (other.rank, other.score.value.time_ns)


@given(fields, fields, fields)
def test_to_be_ahead_is_an_order(ones: list[Score], others: list[Score], more: list[Score]) -> None:
    for one, other, third in product(ones[:5], others[:5], more[:5]):
        if is_ahead(one.value, other.value):
            assert not is_ahead(other.value, one.value)
            if is_ahead(other.value, third.value):
                assert is_ahead(one.value, third.value)


def ranks(scores: Iterable[Score]) -> dict[int, int]:
    return {standing.score.person: standing.rank for standing in rank(scores)}


@given(fields, st.data())
def test_what_a_submission_claims_moves_nobody(scores: list[Score], data: st.DataObject) -> None:
    lying = [
        replace(each, value=replace(each.value, claimed_ns=data.draw(st.floats(0.1, 200))))
        for each in scores
    ]
    assert ranks(lying) == ranks(scores)


@given(fields)
def test_without_an_entry_nobody_has_a_worse_rank(scores: list[Score]) -> None:
    everyone = ranks(scores)
    for gone in everyone:
        left = ranks(each for each in scores if each.person != gone)
        assert all(left[person] <= everyone[person] for person in left)


@given(fields, st.floats(0, 50), st.floats(0, 50))
def test_an_entry_slower_than_all_changes_no_rank(
    scores: list[Score], slower: float, width: float
) -> None:
    end = max((each.value.upper_ns for each in scores), default=1.0)
    before = ranks(scores)
    after = ranks([*scores, make_score(99, end + slower, width)])
    assert {person: after[person] for person in before} == before


@given(fields, st.floats(0.01, 50))
def test_a_wider_interval_never_gains_a_better_rank(scores: list[Score], more: float) -> None:
    own = {standing.score.person: standing.score for standing in rank(scores)}
    best = list(own.values())
    before = ranks(best)
    for each in best:
        for wider in (
            replace(each.value, half_width_ns=each.value.half_width_ns + more),
            replace(each.value, resolution_ns=more),
        ):
            after = ranks(
                [replace(each, value=wider), *(own[who] for who in own if who != each.person)]
            )
            assert after[each.person] >= before[each.person]
            assert all(after[who] <= before[who] for who in own if who != each.person)


def test_records_are_ahead_of_the_record_before_them() -> None:
    times = (300, 400, 300, 299.5, 200, 199.5, 190)
    first, slower, equal, near, faster, nearly, last = (make_score(1, time) for time in times)
    scores = [faster, equal, slower, first, last, nearly, near]
    assert records(scores) == (first, faster, last)
    assert records([]) == ()


def test_a_wide_interval_is_no_record() -> None:
    first, wide, narrow = make_score(1, 100, 1), make_score(2, 80, 30), make_score(3, 90, 1)
    assert records([first, wide, narrow]) == (first, narrow)
