"""What every store must do with competitions and their boards, and with what publishes them."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import asyncpg
import pytest

from bot.domain.board import Access, Board, NewBoard, SeasonRules, Viewer, Visibility
from bot.domain.competition import Competition, NewCompetition, PointsRule
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, CompetitionId, PersonId, PublicationId
from bot.domain.notifications import closing_notification, opening_notification
from bot.domain.publication import Draft, NewPublication, PublishRequest
from bot.services.competitions import BoardDates, change_dates
from bot.services.publishing.pipeline import MOST_COMPETITIONS, Pipeline
from bot.services.publishing.publish import read_competition
from bot.store.postgres.store import PostgresStore
from runners.contract.task import Grader
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import until
from tests.doubles.scaffolded import make_judge
from tests.doubles.stored import Scene, make_task, set_up
from tests.doubles.task_zips import packed_competition

HOUR = timedelta(hours=1)
NO_RULES = SeasonRules()
EVERYONE = Viewer(PersonId(0), sees_all=True)


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
    assert await scene.store.competitions.known_to(EVERYONE) == (other, stored)
    clock.advance(3600)
    assert [each.rules.opens_at for each in (await find(scene)).boards] == [None, None]


async def test_a_competition_is_changed_and_its_creator_stays(
    scene: Scene, clock: ManualClock
) -> None:
    add = await publish(scene, "add")
    new = new_competition(scene, clock, scene.board.id, add.id)
    stored = await scene.store.competitions.put(new)
    bob = await scene.store.people.ensure("local:bob", "Bob")
    changes = replace(
        new,
        creator=bob.id,
        description="new",
        points=PointsRule(),
        opens_at=clock.now(),
        boards=(add.id,),
    )
    with pytest.raises(UserError, match="already a competition named 'Spring cup'") as refusal:
        await scene.store.competitions.put(changes)
    assert refusal.value.code == "competition-exists"
    assert await find(scene) == stored
    changed = await scene.store.competitions.put(changes, stored.id)
    assert changed == replace(
        stored, description="new", points=PointsRule(), opens_at=clock.now(), boards=(add,)
    )
    assert await scene.store.competitions.known_to(EVERYONE) == (changed,)


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
    assert await scene.store.competitions.known_to(EVERYONE) == ()


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
    assert await scene.store.competitions.known_to(EVERYONE) == ()


async def test_the_name_of_a_competition_may_contain_any_character(
    scene: Scene, clock: ManualClock
) -> None:
    new = new_competition(scene, clock, scene.board.id)
    stored = await scene.store.competitions.put(replace(new, name="a\0b", description="\ud800"))
    assert (stored.name, stored.description) == ("a\u2400b", "\ufffd")
    assert await scene.store.competitions.find("a\0b") == stored
    again = await scene.store.competitions.put(replace(new, name="a\0b"), stored.id)
    assert again.id == stored.id


async def test_a_deleted_competition_leaves_its_boards_and_no_notification(
    scene: Scene, clock: ManualClock
) -> None:
    competitions, addressee = scene.store.competitions, "discord:1"
    stored = await competitions.put(new_competition(scene, clock, scene.board.id))
    other = await competitions.put(
        replace(new_competition(scene, clock, scene.board.id), name="Other")
    )
    news = [
        make(each, scene.board, addressee)
        for each in (stored, other)
        for make in (opening_notification, closing_notification)
    ]
    assert await scene.store.outbox.put(news) == 4
    assert await competitions.delete(stored.id)
    assert not await competitions.delete(stored.id)
    assert await competitions.known_to(EVERYONE) == (other,)
    assert await scene.store.boards.get(scene.board.id) == scene.board
    claimed = await scene.store.outbox.claim("discord", "me", HOUR, 10)
    assert {each.notification.key.split()[1] for each in claimed} == {str(other.id)}
    with pytest.raises(UserError, match="was deleted in the meantime"):
        await competitions.put(new_competition(scene, clock, scene.board.id), stored.id)


async def test_a_page_of_competitions_has_only_what_the_viewer_may_know(
    scene: Scene, clock: ManualClock
) -> None:
    competitions, boards = scene.store.competitions, scene.store.boards
    bob = await scene.store.people.ensure("local:bob", "Bob")
    invited = frozenset({"discord:7"})
    hidden = await publish(scene, "hidden")
    await boards.restrict(hidden.id, Access(Visibility.PRIVATE))
    await boards.invite(hidden.id, invited)
    members = await publish(scene, "members")
    await boards.restrict(members.id, Access(house="discord-guild:1"))
    for number, (name, board) in enumerate(
        [("a", scene.board), ("b", hidden), ("c", scene.board), ("d", members), ("e", scene.board)]
    ):
        new = new_competition(scene, clock, board.id)
        await competitions.put(replace(new, name=name, opens_at=clock.now() + number * HOUR))

    async def known(viewer: Viewer, after: str | None = "", limit: int | None = None) -> str:
        found = await competitions.known_to(viewer, after=after, limit=limit)
        return "".join(each.name for each in found)

    viewers = {
        Viewer(bob.id): "ace",
        Viewer(bob.id, invited): "abce",
        Viewer(bob.id, frozenset({"discord-guild:1"})): "acde",
        Viewer(scene.ada.id): "abcde",
        EVERYONE: "abcde",
    }
    for viewer, names in viewers.items():
        assert await known(viewer) == names
        assert await known(viewer, None) == names[::-1]
    assert await known(Viewer(bob.id), limit=2) == "ac"
    assert await known(Viewer(bob.id), "a", 1) == "c"
    assert await known(Viewer(bob.id), None, 2) == "ec"
    assert await competitions.count_of(scene.ada.id) == 5
    assert await competitions.count_of(bob.id) == 0


async def test_what_is_not_announced_yet_is_found(scene: Scene, clock: ManualClock) -> None:
    competitions, boards = scene.store.competitions, scene.store.boards
    add = await publish(scene, "add")
    stored = await competitions.put(new_competition(scene, clock, scene.board.id, add.id))

    async def found() -> bool:
        return bool(await competitions.unannounced())

    assert not await found()
    clock.advance(3600)
    assert await found()
    await competitions.announce_opening(stored.id, clock.now())
    assert not await found()
    closes = clock.now() + HOUR
    await boards.configure(add.id, add.gpus, closes)
    clock.advance(7200)
    assert not await found(), "the other board has no deadline"
    await boards.configure(scene.board.id, scene.board.gpus, closes)
    assert await found()
    await competitions.announce_closing(stored.id, closes)
    assert not await found()


async def test_a_board_has_the_grader_that_was_chosen(scene: Scene) -> None:
    boards = scene.store.boards
    assert scene.board.grader is None
    chosen = await boards.choose_grader(scene.board.id, Grader.POPCORN)
    assert chosen.grader is Grader.POPCORN
    assert await boards.get(scene.board.id) == chosen
    new = NewBoard("add", ("CPU",), None, scene.ada.id, grader=Grader.NATIVE)
    assert (await boards.publish(new, make_task(), "add")).grader is Grader.NATIVE


async def test_a_kept_zip_is_published_again_once(scene: Scene) -> None:
    publications = scene.store.publications

    async def ended(data: bytes, door: str = "web", *, keep: bool = True) -> PublicationId:
        number = await publications.add(NewPublication(door, scene.ada.id, data, "{}", "here"))
        await publications.claim(door, "me", HOUR)
        assert await publications.end(number, "me", keep_zip=keep)
        return number

    async def has_zip(number: PublicationId) -> bool:
        summary = await publications.summary("web", number)
        return summary is not None and summary.has_zip

    dropped, first = await ended(b"0", keep=False), await ended(b"1")
    assert (await has_zip(dropped), await has_zip(first)) == (False, True)
    other_door, second = await ended(b"2", "discord"), await ended(b"3")
    assert (await has_zip(first), await has_zip(second)) == (False, True), "one for each person"
    kept = [await publications.kept_zip("web", each) for each in (first, second, other_door)]
    assert kept == [None, b"3", None]
    assert await publications.repeat("web", first, "{}") is None
    assert await publications.repeat("web", other_door, "{}") is None
    again = await publications.repeat("web", second, '{"grader":"native"}')
    assert again is not None
    assert await publications.repeat("web", second, "{}") is None
    assert not await has_zip(second)
    (claimed,) = await publications.claim("web", "me", HOUR)
    assert (claimed.id, claimed.zip, claimed.person) == (again, b"3", scene.ada.id)
    assert (claimed.wish, claimed.place, claimed.tries) == ('{"grader":"native"}', "here", 1)
    assert await publications.repeat("web", again, "{}") is None, "it has not ended"


TEXT = "name: Cup\nproblems:\n  - {directory: double, name: NAME, gpus: [CPU]}\n"


async def drafts_of(person: PersonId, board: str) -> tuple[Draft, ...]:
    zip_file = packed_competition(TEXT.replace("NAME", board), "double")
    request = PublishRequest(person, "Cup", competition=True, strict=False)
    drafts, _ = await read_competition(zip_file, request)
    return drafts


async def test_of_two_who_publish_one_new_name_at_once_the_second_is_refused(
    scene: Scene, clock: ManualClock
) -> None:
    bob = (await scene.store.people.ensure("local:bob", "Bob")).id
    both = asyncio.Barrier(2)

    async def together(_: object) -> None:
        await both.wait()  # both have found that there is no such competition

    async def publish_cup(person: PersonId, board: str) -> None:
        pipeline = Pipeline(scene.store, clock, [make_judge()], print, before_publish=together)
        await pipeline.check_and_publish(await drafts_of(person, board), unchecked=True)

    wanted = {scene.ada.id: "adas", bob: "bobs"}
    ends = await asyncio.gather(
        *(publish_cup(person, board) for person, board in wanted.items()), return_exceptions=True
    )
    (refusal,) = [each for each in ends if each is not None]
    assert isinstance(refusal, UserError)
    assert refusal.code in {"competition-exists", "not-yours"}
    stored = await find(scene, "Cup")
    assert [each.name for each in stored.boards] == [wanted[stored.creator]]
    (other,) = set(wanted.values()) - {wanted[stored.creator]}
    assert await scene.store.boards.find(other) is None


@pytest.mark.postgres
async def test_a_name_that_was_taken_after_it_was_looked_up_is_refused(
    postgres_store: PostgresStore, clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    bob = await postgres_store.people.ensure("local:bob", "Bob")
    new = new_competition(scene, clock, scene.board.id)

    async def publish_later() -> None:
        async with postgres_store.transaction() as tx:
            assert await tx.competitions.find(new.name) is None
            await postgres_store.competitions.put(new)
            await tx.competitions.put(replace(new, creator=bob.id, description="Bob's"))

    with pytest.raises(UserError, match="already a competition named"):
        await publish_later()
    stored = await find(scene)
    assert (stored.creator, stored.description) == (scene.ada.id, "about it")


@pytest.mark.postgres
async def test_a_board_that_is_added_while_the_dates_change_stays(
    postgres_store: PostgresStore, postgres_dsn: str, clock: ManualClock
) -> None:
    scene = await set_up(postgres_store)
    first = await publish(scene, "a", SeasonRules(clock.now() + HOUR))
    added = await publish(scene, "b", SeasonRules(clock.now() + HOUR))
    stored = await postgres_store.competitions.put(new_competition(scene, clock, first.id))
    dates = {"a": BoardDates(clock.now() + 2 * HOUR, None)}
    viewer = Viewer(scene.ada.id)
    async with postgres_store.transaction() as tx:
        await tx.competitions.put(new_competition(scene, clock, first.id, added.id), stored.id)
        changing = asyncio.create_task(
            change_dates(postgres_store, clock, viewer, stored.name, dates=dates)
        )
        await until(lambda: _waits_for_a_lock(postgres_dsn))
    await changing
    assert [each.name for each in (await find(scene)).boards] == ["a", "b"]


async def _waits_for_a_lock(dsn: str) -> bool:
    """Whether a statement at this database waits for a row that another one has locked."""
    connection = await asyncpg.connect(dsn)
    try:
        return bool(
            await connection.fetchval("select exists (select from pg_locks where not granted)")
        )
    finally:
        await connection.close()


async def test_a_person_has_a_limited_number_of_competitions(
    scene: Scene, clock: ManualClock
) -> None:
    for number in range(MOST_COMPETITIONS):
        new = new_competition(scene, clock, scene.board.id)
        await scene.store.competitions.put(replace(new, name=f"Cup {number}"))
    pipeline = Pipeline(scene.store, clock, [make_judge()], print)
    drafts = await drafts_of(scene.ada.id, "adas")
    with pytest.raises(UserError, match="you have 50 competitions; delete one") as refusal:
        await pipeline.check_and_publish(drafts, unchecked=True)
    assert refusal.value.code == "too-many-competitions"
    assert await scene.store.boards.find("adas") is None
    await scene.store.competitions.delete((await find(scene, "Cup 0")).id)
    await pipeline.check_and_publish(drafts, unchecked=True)
    await pipeline.check_and_publish(drafts, unchecked=True)  # it is one of them
