"""What every store must do with competitions, and with boards that open later."""

from dataclasses import replace
from datetime import timedelta

from bot.domain.board import Board, NewBoard, SeasonRules
from bot.domain.competition import Competition, NewCompetition, PointsRule
from bot.domain.ids import BoardId, CompetitionId
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene, make_task

HOUR = timedelta(hours=1)
NO_RULES = SeasonRules()


async def publish(scene: Scene, name: str, rules: SeasonRules = NO_RULES) -> Board:
    new = NewBoard(name, ("CPU",), None, scene.ada.id, rules=rules)
    return await scene.store.boards.publish(new, make_task(), name)


def new_competition(scene: Scene, clock: ManualClock, *boards: BoardId) -> NewCompetition:
    points = PointsRule((25.0, 18.5))
    opens_at = clock.now() + HOUR
    return NewCompetition("Spring cup", scene.ada.id, "about it", points, opens_at, boards)


async def find(scene: Scene, name: str = "Spring cup") -> Competition:
    found = await scene.store.competitions.find(name)
    assert found is not None
    return found


async def test_a_board_has_its_opening_date_until_it_comes(
    scene: Scene, clock: ManualClock
) -> None:
    rules = SeasonRules(clock.now() + HOUR, late_runs=True)
    board = await publish(scene, "later", rules)
    assert board.rules == rules
    boards = scene.store.boards
    assert [each.rules for each in await boards.all()] == [rules, SeasonRules()]
    clock.advance(3599)
    assert await boards.get(board.id) == board
    clock.advance(1)
    opened = replace(board, rules=SeasonRules(late_runs=True))
    assert await boards.get(board.id) == opened == await boards.find("later")
    assert opened in await boards.all()


async def test_the_rules_of_a_board_are_changed(scene: Scene, clock: ManualClock) -> None:
    rules = SeasonRules(clock.now() + HOUR)
    changed = await scene.store.boards.set_rules(scene.board.id, rules)
    assert changed == replace(scene.board, rules=rules)
    assert await scene.store.boards.get(scene.board.id) == changed
    assert (await scene.store.boards.configure(scene.board.id, ("L4",), None)).rules == rules
    gone = await scene.store.boards.set_rules(scene.board.id, SeasonRules(late_runs=True))
    assert gone.rules == SeasonRules(late_runs=True)


async def test_a_competition_has_its_boards_in_order(scene: Scene, clock: ManualClock) -> None:
    add = await publish(scene, "add", SeasonRules(clock.now() + HOUR))
    new = new_competition(scene, clock, scene.board.id, add.id)
    stored = await scene.store.competitions.put(new)
    assert stored.boards == (scene.board, add)
    assert (stored.name, stored.creator, stored.description) == (
        "Spring cup", scene.ada.id, "about it",
    )  # fmt: skip
    assert (stored.points, stored.opens_at) == (new.points, new.opens_at)
    assert (stored.opening_announced, stored.closing_announced) == (None, None)
    assert await find(scene) == stored
    assert await scene.store.competitions.find("spring cup") is None
    other = await scene.store.competitions.put(replace(new, name="A cup", boards=(add.id,)))
    assert await scene.store.competitions.all() == (other, stored)
    clock.advance(3600)
    assert [each.rules.opens_at for each in (await find(scene)).boards] == [None, None]


async def test_a_competition_is_changed_and_its_creator_stays(
    scene: Scene, clock: ManualClock
) -> None:
    add = await publish(scene, "add")
    new = new_competition(scene, clock, scene.board.id, add.id)
    stored = await scene.store.competitions.put(new)
    bob = await scene.store.people.ensure("local:bob", "Bob")
    changed = await scene.store.competitions.put(
        replace(
            new,
            creator=bob.id,
            description="new",
            points=PointsRule(),
            opens_at=clock.now(),
            boards=(add.id,),
        )
    )
    assert changed == replace(
        stored, description="new", points=PointsRule(), opens_at=clock.now(), boards=(add,)
    )
    assert await scene.store.competitions.all() == (changed,)


async def test_each_date_is_announced_once(scene: Scene, clock: ManualClock) -> None:
    competitions = scene.store.competitions
    stored = await competitions.put(new_competition(scene, clock, scene.board.id))
    first, second = clock.now(), clock.now() + HOUR
    told = [await competitions.announce_opening(stored.id, each) for each in (first, first, second)]
    assert told == [True, False, False]
    told = [await competitions.announce_closing(stored.id, each) for each in (second, second)]
    assert told == [True, False]
    found = await find(scene)
    assert (found.opening_announced, found.closing_announced) == (first, second)
    assert not await competitions.announce_opening(CompetitionId(999), first)
    assert not await competitions.announce_closing(CompetitionId(999), first)


async def test_a_competition_ends_with_its_last_board(scene: Scene, clock: ManualClock) -> None:
    add = await publish(scene, "add")
    await scene.store.competitions.put(new_competition(scene, clock, add.id, scene.board.id))
    assert await scene.store.boards.delete(add.id)
    assert (await find(scene)).boards == (scene.board,)
    assert await scene.store.boards.delete(scene.board.id)
    assert await scene.store.competitions.all() == ()


async def test_a_competition_is_stored_together_with_its_boards(
    scene: Scene, clock: ManualClock
) -> None:
    try:
        async with scene.store.transaction() as tx:
            new = NewBoard("add", ("CPU",), None, scene.ada.id)
            add = await tx.boards.publish(new, make_task(), "add")
            await tx.competitions.put(new_competition(scene, clock, add.id))
            raise RuntimeError("stop")  # noqa: TRY301  as if the process ended here
    except RuntimeError:
        pass
    assert await scene.store.boards.find("add") is None
    assert await scene.store.competitions.all() == ()


async def test_the_name_of_a_competition_may_contain_any_character(
    scene: Scene, clock: ManualClock
) -> None:
    new = new_competition(scene, clock, scene.board.id)
    stored = await scene.store.competitions.put(replace(new, name="a\0b", description="\ud800"))
    assert (stored.name, stored.description) == ("a\u2400b", "\ufffd")
    assert await scene.store.competitions.find("a\0b") == stored
    again = await scene.store.competitions.put(replace(new, name="a\0b"))
    assert again.id == stored.id
