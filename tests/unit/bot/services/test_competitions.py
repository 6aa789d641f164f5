"""The overall ranking, what people see before a competition opens, closing and extending."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.board import Access, Board, SeasonRules, Viewer, Visibility
from bot.domain.competition import Competition, NewCompetition, PointsRule
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.publication import PublishRequest
from bot.services import competitions
from bot.services.boards import BoardArchive
from bot.services.publishing.publish import publish
from runners.contract.evaluation import CaseKind
from tests.doubles.factories import make_case, make_measurement, make_task
from tests.doubles.place import Place

DAY = timedelta(days=1)
NAME = "Cup"


async def board(place: Place, name: str, days: int = 2, opens: int = 0) -> Board:
    """A board that opens and closes after this many days."""
    now = place.clock.now()
    rules = SeasonRules(now + opens * DAY if opens else None)
    request = PublishRequest(place.ada, name, ("CPU",), now + days * DAY, rules=rules)
    return (await publish(place.store, place.clock, request, make_task(name=name))).board


async def cup(
    place: Place,
    boards: Sequence[Board],
    opens: int = 0,
    ranks: tuple[float, ...] = (),
    onto: Competition | None = None,
) -> Competition:
    numbers = tuple(each.id for each in boards)
    opens_at = place.clock.now() + opens * DAY
    new = NewCompetition(NAME, place.ada, "words", PointsRule(ranks), opens_at, numbers)
    return await place.store.competitions.put(new, None if onto is None else onto.id)


async def ran(place: Place, name: str, board: str, time_ns: float) -> PersonId:
    person = await place.person(name)
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1_000 * time_ns, 0))
    await place.judged(await place.submit(person, board=board), cases=(case,))
    return person


async def stranger(place: Place) -> Viewer:
    return Viewer(await place.person("stranger"))


async def test_the_ranking_adds_the_points_of_all_boards(place: Place) -> None:
    first, second = await board(place, "first"), await board(place, "second")
    await cup(place, (first, second))
    await ran(place, "ada", "first", 100)
    await ran(place, "bob", "first", 200)
    await ran(place, "bob", "second", 100)
    viewer = await stranger(place)
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    assert [(each.name, gpu) for each, gpu in found.leaderboards] == [
        ("first", "CPU"),
        ("second", "CPU"),
    ]
    assert [(each.rank, each.person_name, each.total) for each in found.entries] == [
        (1, "bob", 150.0),
        (2, "ada", 100.0),
    ]
    await ran(place, "eve", "second", 50)
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    assert [(each.person_name, each.total) for each in found.entries] == [
        ("ada", 100.0),
        ("bob", 100.0),
        ("eve", 100.0),
    ]


async def test_handles_tell_apart_similar_names_of_different_boards(
    place: Place,
) -> None:
    first, second = await board(place, "first"), await board(place, "second")
    await cup(place, (first, second))
    await ran(place, "ada", "first", 100)
    other = await place.store.people.ensure("discord:7", "\N{CYRILLIC SMALL LETTER A}da", "mallory")
    case = make_case(CaseKind.BENCHMARK, measurement=make_measurement(200_000, 0))
    await place.judged(await place.submit(other.id, board="second"), cases=(case,))
    viewer = await stranger(place)
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    names = {each.person_name for each in found.entries}
    assert names == {"ada (@local:ada)", f"{other.name} (@mallory)"}


async def test_the_list_of_points_decides_when_there_is_one(place: Place) -> None:
    only = await board(place, "first")
    await cup(place, (only,), ranks=(25.0, 18.0))
    await ran(place, "ada", "first", 100)
    await ran(place, "bob", "first", 101)
    found = await competitions.competition_standings(
        place.store, place.clock, await stranger(place), NAME
    )
    assert [each.total for each in found.entries] == [25.0, 18.0]


async def test_before_it_opens_people_know_its_name_and_date_alone(place: Place) -> None:
    competition = await cup(place, (await board(place, "first", opens=1),), opens=1, ranks=(1.0,))
    viewer = await stranger(place)
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    assert found.competition == replace(
        competition, creator=PersonId(0), description="", points=PointsRule(), boards=()
    )
    assert (found.leaderboards, found.entries) == ((), ())
    (listed,) = await competitions.visible_competitions(place.store, place.clock, viewer)
    assert listed == found.competition
    own = await competitions.competition_standings(
        place.store, place.clock, Viewer(place.ada), NAME
    )
    assert own.competition == competition
    assert [each.name for each, _ in own.leaderboards] == ["first"]
    place.clock.advance(DAY.total_seconds())
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    assert [each.name for each, _ in found.leaderboards] == ["first"]


async def test_of_a_board_that_opens_later_people_know_its_name_and_date_alone(
    place: Place,
) -> None:
    first, second = await board(place, "first"), await board(place, "second", opens=1)
    await cup(place, (first, second))
    viewer = await stranger(place)
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    seen, later = found.competition.boards
    assert seen == first
    assert (later.name, later.rules, later.gpus, later.deadline) == (
        "second", second.rules, (), None,
    )  # fmt: skip
    assert [each.name for each, _ in found.leaderboards] == ["first"]


async def test_a_board_that_the_viewer_may_not_see_is_left_out(place: Place) -> None:
    first, second = await board(place, "first"), await board(place, "second")
    await cup(place, (first, second))
    await ran(place, "ada", "second", 100)
    await place.store.boards.restrict(second.id, Access(Visibility.PRIVATE))
    viewer = await stranger(place)
    found = await competitions.competition_standings(place.store, place.clock, viewer, NAME)
    assert ([each.name for each in found.competition.boards], found.entries) == (["first"], ())
    await place.store.boards.restrict(first.id, Access(Visibility.PRIVATE))
    with pytest.raises(UserError, match="no competition named 'Cup'; no competition exists yet"):
        await competitions.find_competition(place.store, place.clock, viewer, NAME)
    assert await competitions.visible_competitions(place.store, place.clock, viewer) == ()


async def test_an_unknown_competition_is_refused_with_the_nearest_names(place: Place) -> None:
    await cup(place, (await board(place, "first"),))
    with pytest.raises(UserError, match="did you mean Cup") as refusal:
        await competitions.find_competition(place.store, place.clock, Viewer(place.ada), "Cups")
    assert refusal.value.code == "unknown-competition"


async def test_its_creator_closes_every_open_board_early(place: Place) -> None:
    first, second = await board(place, "first", days=2), await board(place, "second", days=9)
    await cup(place, (first, second))
    place.clock.advance(3 * DAY.total_seconds())
    now, creator = place.clock.now(), Viewer(place.ada)
    closed = await competitions.close_competition(place.store, place.clock, creator, NAME)
    assert [each.deadline for each in closed.boards] == [first.deadline, now]
    place.clock.advance(1)
    assert closed.has_closed(place.clock.now())
    with pytest.raises(UserError, match="accepts no more submissions"):
        await place.submit(await place.person("bob"), board="second")
    (newest, *_) = await place.store.audit.rows()
    assert (newest.action, newest.subject, newest.actor) == (
        "set-deadlines", "competition Cup", place.ada,
    )  # fmt: skip
    with pytest.raises(UserError, match="no board of competition Cup would close") as refusal:
        await competitions.close_competition(place.store, place.clock, creator, NAME)
    assert refusal.value.code == "unchanged"


async def test_its_creator_extends_the_boards_that_close_earlier(place: Place) -> None:
    first, second = await board(place, "first", days=2), await board(place, "second", days=9)
    await cup(place, (first, second))
    place.clock.advance(3 * DAY.total_seconds())
    creator, until = Viewer(place.ada), place.clock.now() + DAY
    extended = await competitions.extend_competition(
        place.store, place.clock, creator, NAME, until=until
    )
    assert [each.deadline for each in extended.boards] == [until, second.deadline]
    await place.submit(await place.person("bob"), board="first")
    for wrong, words in ((until, "would close at another"), (place.clock.now(), "in the past")):
        with pytest.raises(UserError, match=words):
            await competitions.extend_competition(
                place.store, place.clock, creator, NAME, until=wrong
            )


async def test_a_board_is_not_extended_to_a_date_before_it_opens(place: Place) -> None:
    await cup(place, (await board(place, "first"), await board(place, "second", 9, opens=5)))
    with pytest.raises(UserError, match="'second' closes before it opens at 2026-11-06 12"):
        await competitions.extend_competition(
            place.store, place.clock, Viewer(place.ada), NAME, until=place.clock.now() + 4 * DAY
        )


async def test_what_has_not_opened_is_not_closed(place: Place) -> None:
    await cup(place, (await board(place, "first", opens=1),), opens=1)
    with pytest.raises(UserError, match="competition 'Cup' opens at"):
        await competitions.close_competition(place.store, place.clock, Viewer(place.ada), NAME)


async def test_a_board_that_opens_later_is_not_closed_before(place: Place) -> None:
    first, second = await board(place, "first", 9), await board(place, "second", 9, opens=5)
    await cup(place, (first, second))
    creator, now = Viewer(place.ada), place.clock.now()
    with pytest.raises(UserError, match="an earlier opening date on its competition's page"):
        await competitions.close_competition(place.store, place.clock, creator, NAME)
    assert await place.store.boards.get(first.id) == first, "nothing is changed"
    request = PublishRequest(place.ada, "second", deadline=now + 4 * DAY)
    with pytest.raises(UserError, match="closes before it opens") as refusal:
        await publish(place.store, place.clock, request, make_task(name="second"))
    assert refusal.value.code == "bad-deadline"


async def test_its_creator_changes_the_dates_of_each_board(place: Place) -> None:
    first, second = await board(place, "first", 9, opens=2), await board(place, "second", 9, 3)
    competition = await cup(place, (first, second), opens=2)
    creator, now = Viewer(place.ada), place.clock.now()

    async def change(name: str, opens: int | None, closes: int | None) -> Competition:
        dates = competitions.BoardDates(
            None if opens is None else now + opens * DAY,
            None if closes is None else now + closes * DAY,
        )
        return await competitions.change_dates(
            place.store, place.clock, creator, NAME, dates={name: dates}
        )

    changed = await change("first", 4, 8)
    assert changed.opens_at == now + 3 * DAY, "with its first board"
    assert changed.boards[0] == replace(
        first, deadline=now + 8 * DAY, rules=SeasonRules(now + 4 * DAY)
    )
    assert changed.boards[1] == second
    assert (await change("second", None, None)).opens_at == now, "a board is open now"
    (newest, *_) = await place.store.audit.rows()
    assert (newest.action, newest.subject) == ("set-deadlines", "competition Cup")
    for opens, closes, words in (
        (8, 8, "'first' closes before it opens"),
        (4, -1, "the deadline of 'first' is in the past"),
        (4, 8, "nothing was changed"),
    ):
        with pytest.raises(UserError, match=words):
            await change("first", opens, closes)
    found = await place.store.competitions.find(NAME)
    assert found is not None
    assert (found.id, found.creator) == (competition.id, place.ada)
    assert [each.deadline for each in found.boards] == [now + 8 * DAY, None]


async def states(place: Place, *boards: Board) -> list[str]:
    submissions = place.store.submissions
    return [BoardArchive(each, (), len(await submissions.to(each.id))).state for each in boards]


async def test_a_deleted_competition_leaves_its_boards(place: Place) -> None:
    first, second = await board(place, "first"), await board(place, "second")
    await cup(place, (first, second))
    await ran(place, "bob", "first", 100)
    bob = Viewer(await place.person("bob"))

    async def delete(viewer: Viewer) -> None:
        await competitions.delete_competition(place.store, place.clock, viewer, NAME, reason="over")

    with pytest.raises(UserError, match="belongs to another person"):
        await delete(bob)
    await delete(Viewer(place.ada))
    assert await place.store.competitions.find(NAME) is None
    assert [await place.store.boards.get(each.id) for each in (first, second)] == [first, second]
    assert len(await place.store.submissions.to(first.id)) == 1
    (newest, *_) = await place.store.audit.rows()
    assert (newest.action, newest.subject, newest.reason) == (
        "delete-competition", "competition Cup", "over",
    )  # fmt: skip
    with pytest.raises(UserError, match="no competition named 'Cup'"):
        await delete(Viewer(place.ada))


async def test_its_boards_are_deleted_only_with_their_archives(place: Place) -> None:
    first, second = await board(place, "first"), await board(place, "second")
    await cup(place, (first, second))
    creator, before = Viewer(place.ada), await states(place, first, second)
    await ran(place, "bob", "first", 100)
    now = await states(place, first, second)
    for archives in ([], before, now[:1]):
        with pytest.raises(UserError, match="nothing was deleted") as refusal:
            await competitions.delete_competition(
                place.store, place.clock, creator, NAME, archives=archives
            )
        assert refusal.value.code == "stale-match"
    assert await place.store.competitions.find(NAME) is not None
    await competitions.delete_competition(place.store, place.clock, creator, NAME, archives=now)
    assert await place.store.competitions.find(NAME) is None
    assert [each.name for each in await place.store.boards.all()] == ["vectoradd"]
    actions = [(each.action, each.subject) for each in (await place.store.audit.rows())[:3]]
    assert actions == [
        ("delete-competition", "competition Cup"),
        ("delete-board", "board second"),
        ("delete-board", "board first"),
    ]


async def test_the_board_of_another_person_is_not_deleted_with_it(place: Place) -> None:
    first, bob = await board(place, "first"), await place.person("bob")
    request = PublishRequest(bob, "other", ("CPU",))
    other = (await publish(place.store, place.clock, request, make_task(name="other"))).board
    await place.store.boards.restrict(other.id, Access(Visibility.PRIVATE))
    await cup(place, (first, other))
    creator, archives = Viewer(place.ada), await states(place, first, other)
    with pytest.raises(UserError, match="belongs to another person"):
        await competitions.delete_competition(
            place.store, place.clock, creator, NAME, archives=archives
        )
    await competitions.delete_competition(place.store, place.clock, creator, NAME)
    assert await place.store.boards.get(first.id) == first


async def test_only_who_owns_a_competition_and_its_boards_changes_it(place: Place) -> None:
    first = await board(place, "first")
    competition = await cup(place, (first,))
    bob = Viewer(await place.person("bob"))
    with pytest.raises(UserError, match="belongs to another person") as refusal:
        await competitions.close_competition(place.store, place.clock, bob, NAME)
    assert refusal.value.code == "not-yours"
    request = PublishRequest(bob.person, "other", ("CPU",))
    await publish(place.store, place.clock, request, make_task(name="other"))
    other = await place.store.boards.find("other")
    assert other is not None
    await cup(place, (first, other), onto=competition)
    with pytest.raises(UserError, match="belongs to another person"):
        await competitions.close_competition(place.store, place.clock, Viewer(place.ada), NAME)
    await place.store.boards.restrict(other.id, Access(Visibility.PRIVATE))
    with pytest.raises(UserError, match="belongs to another person"):  # although she sees it not
        await competitions.close_competition(place.store, place.clock, Viewer(place.ada), NAME)
    admin = replace(bob, sees_all=True)
    closed = await competitions.close_competition(place.store, place.clock, admin, NAME)
    assert (closed.id, len(closed.boards)) == (competition.id, 2)
