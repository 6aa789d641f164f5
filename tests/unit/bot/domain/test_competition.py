"""Points for the ranks of one leaderboard, and the ranking over several."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.board import Access, SeasonRules, Viewer, Visibility
from bot.domain.competition import Competition, PointsRule, rank_overall
from bot.domain.ids import CompetitionId, PersonId
from bot.domain.scoring import Standing
from tests.doubles.factories import NOON, make_board, make_score, rank

HOUR = timedelta(hours=1)
boards = st.lists(
    st.lists(st.tuples(st.integers(1, 12), st.floats(1, 1e12), st.floats(0, 4)), max_size=20).map(
        lambda rows: rank([make_score(*row) for row in rows])
    ),
    max_size=5,
)
rules = st.one_of(
    st.just(PointsRule()),
    st.lists(st.integers(0, 100), min_size=1, max_size=8).map(
        lambda points: PointsRule(tuple(map(float, sorted(points, reverse=True))))
    ),
)


def standings(*times: float) -> tuple[Standing, ...]:
    """The person with number n has the n-th time."""
    return rank([make_score(number, each) for number, each in enumerate(times, start=1)])


def make_competition(**changes: object) -> Competition:
    values: dict[str, object] = {
        "id": CompetitionId(1),
        "name": "cup",
        "creator": PersonId(1),
        "description": "",
        "points": PointsRule(),
        "opens_at": NOON,
        "boards": (make_board(),),
    }
    return Competition(**(values | changes))  # type: ignore[arg-type]


def test_by_default_points_are_the_ratio_of_the_best_time_to_the_own() -> None:
    points = PointsRule().points(standings(200.0, 100.0, 300.0))
    assert points == {1: 50.0, 2: 100.0, 3: 33.33}
    assert PointsRule().points(()) == {}


def test_a_list_has_the_points_of_the_first_places() -> None:
    assert PointsRule((25.0, 18.0)).points(standings(100.0, 200.0, 300.0)) == {1: 25, 2: 18, 3: 0}


@pytest.mark.parametrize(
    ("times", "points"),
    [
        ((100.0, 100.0, 300.0), {1: 21.5, 2: 21.5, 3: 15.0}),
        ((100.0, 200.0, 200.0, 200.0), {1: 25.0, 2: 11.0, 3: 11.0, 4: 11.0}),
        ((100.0, 100.0, 100.0, 100.0), {1: 14.5, 2: 14.5, 3: 14.5, 4: 14.5}),
    ],
)
def test_a_shared_rank_gets_the_mean_of_the_places_it_takes(
    times: tuple[float, ...], points: dict[int, float]
) -> None:
    assert PointsRule((25.0, 18.0, 15.0)).points(standings(*times)) == points


def test_who_shares_a_rank_has_the_same_points_and_a_wide_interval_gains_none() -> None:
    near = rank([make_score(1, 100, 10), make_score(2, 105, 10), make_score(3, 100, 120)])
    assert PointsRule().points(near) == {1: 100.0, 2: 100.0, 3: 50.0}


def test_ranks_that_follow_a_chain_of_near_times_never_get_more_than_those_before() -> None:
    chain = rank([make_score(who, time, 1) for who, time in ((1, 10), (2, 10.8), (3, 11.6))])
    assert [each.rank for each in chain] == [1, 1, 2]
    assert PointsRule((25.0, 18.0, 15.0)).points(chain) == {1: 21.5, 2: 21.5, 3: 15.0}


def test_the_points_of_all_leaderboards_are_added_and_no_rank_counts_as_0() -> None:
    first, second, third = rank_overall(
        [standings(100.0, 200.0), (), rank([make_score(2, 50.0), make_score(3, 100.0)])],
        PointsRule(),
    )
    assert (first.rank, first.person, first.total) == (1, 2, 150.0)
    assert first.points == (50.0, None, 100.0)
    assert (second.rank, second.person, second.points) == (2, 1, (100.0, None, None))
    assert (third.rank, third.person, third.points) == (3, 3, (None, None, 50.0))
    assert third.person_name == "person 3"


def test_equal_totals_share_a_rank() -> None:
    boards = [standings(100.0, 200.0), rank([make_score(2, 100.0), make_score(1, 200.0)])]
    boards.append(rank([make_score(3, 100.0)]))
    assert [(each.rank, each.person) for each in rank_overall(boards, PointsRule())] == [
        (1, 1),
        (1, 2),
        (3, 3),
    ]


@given(boards, rules)
def test_the_overall_ranking_agrees_with_its_totals(
    leaderboards: list[tuple[Standing, ...]], rule: PointsRule
) -> None:
    entries = rank_overall(leaderboards, rule)
    people = {each.score.person for board in leaderboards for each in board}
    assert Counter(each.person for each in entries) == Counter(people)
    for entry in entries:
        assert entry.rank == 1 + sum(each.total > entry.total for each in entries)
        assert entry.total == pytest.approx(sum(each or 0.0 for each in entry.points), abs=0.01)
    assert [each.rank for each in entries] == sorted(each.rank for each in entries)


@given(boards, rules)
def test_who_is_faster_never_gets_fewer_points(
    leaderboards: list[tuple[Standing, ...]], rule: PointsRule
) -> None:
    for board in leaderboards:
        points = rule.points(board)
        given_points = [points[each.score.person] for each in board]
        assert given_points == sorted(given_points, reverse=True)
        most = max(rule.ranks, default=100.0)
        assert all(0.0 <= each <= most for each in given_points)


@given(boards, rules.filter(lambda rule: bool(rule.ranks)))
def test_ties_neither_create_points_nor_lose_any(
    leaderboards: list[tuple[Standing, ...]], rule: PointsRule
) -> None:
    for board in leaderboards:
        given_points = sum(rule.points(board).values())
        assert given_points == pytest.approx(sum(rule.ranks[: len(board)]), abs=0.01 * len(board))


def test_a_competition_closes_with_its_last_board() -> None:
    early, late = make_board(deadline=NOON), make_board(deadline=NOON + HOUR)
    competition = make_competition(boards=(late, early))
    assert competition.closes_at == NOON + HOUR
    assert not competition.has_closed(NOON + HOUR)
    assert competition.has_closed(NOON + HOUR + timedelta(seconds=1))
    endless = make_competition(boards=(late, make_board()))
    assert endless.closes_at is None
    assert not endless.has_closed(NOON + 99 * HOUR)


def test_a_competition_opens_at_its_date() -> None:
    assert make_competition().has_opened(NOON)
    assert not make_competition().has_opened(NOON - timedelta(seconds=1))


def test_a_competition_is_announced_to_those_who_may_know_one_of_its_boards() -> None:
    private = make_board(access=Access(Visibility.PRIVATE), rules=SeasonRules(NOON))
    stranger = Viewer(PersonId(9))
    assert not make_competition(boards=(private,)).announced_to(stranger)
    upcoming = make_board(rules=SeasonRules(NOON))
    assert make_competition(boards=(private, upcoming)).announced_to(stranger)
    assert make_competition(boards=(private,)).announced_to(Viewer(PersonId(1)))
    assert make_competition(boards=(private,)).belongs_to(Viewer(PersonId(9), sees_all=True))
