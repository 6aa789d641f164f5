import asyncio
from datetime import timedelta

import pytest

from bot.domain.board import Access, SeasonRules, SourceVisibility, Visibility
from bot.domain.competition import Competition, NewCompetition, PointsRule
from bot.domain.errors import StoreError
from bot.domain.notifications import Notification, NotificationKind, deadline_notification
from bot.domain.publication import PublishRequest
from bot.services.notify import (
    announce_competitions,
    announce_deadlines,
    announce_scores,
    run_notifications,
    set_notifications,
    still_wanted,
)
from bot.services.publishing.publish import publish
from runners.contract.evaluation import CaseKind
from tests.doubles.dispatching import failing
from tests.doubles.factories import NOON, make_case, make_measurement, make_task
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)
ROOM = "discord-channel:5"


async def ran(place: Place, name: str, time_ns: float, **changes: object) -> None:
    """Somebody's ranked run of this time is accepted."""
    case = make_case(
        CaseKind.BENCHMARK, measurement=make_measurement(time_ns, 0).model_copy(update=changes)
    )
    await place.judged(await place.submit(await place.person(name)), cases=(case,))


async def told(place: Place) -> list[tuple[str, str]]:
    """Who is told what, by the news that is there now."""
    await announce_scores(place.store)
    letters = await place.store.outbox.claim("", "test", LEASE, 100)
    return sorted((each.notification.addressee, each.notification.text) for each in letters)


async def listen(place: Place, addressee: str, *kinds: NotificationKind) -> None:
    await set_notifications(place.store, addressee, dict.fromkeys(kinds, True))


async def test_nobody_is_told_without_asking(place: Place) -> None:
    await ran(place, "ada", 100)
    await ran(place, "bob", 50)
    assert await told(place) == []
    assert await place.store.outbox.unannounced() == ()


async def test_a_record_is_told_to_all_who_asked_but_its_maker(place: Place) -> None:
    for addressee in (ROOM, "local:ada", "local:bob"):
        await listen(place, addressee, NotificationKind.RECORD)
    await ran(place, "ada", 100)
    assert [who for who, _ in await told(place)] == [ROOM, "local:bob"]
    await ran(place, "bob", 200)
    assert await told(place) == []


async def test_a_claim_neither_makes_a_record_nor_takes_a_rank(place: Place) -> None:
    await ran(place, "ada", 5_800, claimed_ns=5_750.0, resolution_ns=900.0)
    await announce_scores(place.store)
    await listen(place, ROOM, NotificationKind.RECORD)
    await listen(place, "local:ada", NotificationKind.LOST_RANK)
    await ran(place, "mallory", 2_800, claimed_ns=2_800.0, bound_ns=5_870.0, resolution_ns=4_140.0)
    assert await told(place) == []
    await ran(place, "bob", 3_500, claimed_ns=3_400.0, resolution_ns=900.0)
    assert "\n".join(text for _, text in await told(place)) == (
        "Record on vectoradd (CPU): bob takes 3.50 µs ± 0.90, 1.66x (1.11 to 2.58) as fast as ada "
        "(5.80 µs ± 0.90).\n"
        "You went from rank 1 to 2 on vectoradd (CPU): bob takes 3.50 µs ± 0.90, you take 5.80 µs "
        "± 0.90."
    )


async def test_who_loses_a_rank_is_told_once_and_only_when_asked(place: Place) -> None:
    await ran(place, "ada", 100)
    await ran(place, "bob", 200)
    await listen(place, "local:ada", NotificationKind.LOST_RANK)
    await announce_scores(place.store)
    await ran(place, "eve", 50)
    (news,) = await told(place)
    assert news[0] == "local:ada"
    assert "from rank 1 to 2" in news[1]
    assert await told(place) == []


async def test_scores_that_come_together_are_told_one_after_the_other(place: Place) -> None:
    await ran(place, "ada", 100)
    await announce_scores(place.store)
    await listen(place, "local:ada", NotificationKind.LOST_RANK)
    await ran(place, "bob", 50)
    await ran(place, "eve", 40)
    first, second = await told(place)
    assert "from rank 1 to 2" in first[1]
    assert "from rank 2 to 3" in second[1]


async def test_a_better_time_of_ones_own_that_came_meanwhile_is_not_there_yet(
    place: Place,
) -> None:
    await ran(place, "ada", 100)
    await announce_scores(place.store)
    await listen(place, "local:ada", NotificationKind.LOST_RANK)
    await ran(place, "bob", 50)
    await ran(place, "ada", 20)
    (news,) = await told(place)
    assert "from rank 1 to 2" in news[1]
    assert "bob takes 50.0 ns ± 1.0" in news[1]


async def test_scores_of_an_earlier_task_version_are_no_news(place: Place) -> None:
    await listen(place, ROOM, NotificationKind.RECORD)
    await ran(place, "ada", 100)
    changed = make_task(description="other")
    await publish(place.store, place.clock, PublishRequest(place.ada), changed)
    assert await told(place) == []


async def test_a_reminder_of_a_deadline_that_has_moved_is_not_delivered(place: Place) -> None:
    await listen(place, ROOM, NotificationKind.DEADLINE)
    gpus = place.board.gpus
    await place.store.boards.configure(place.board.id, gpus, NOON + timedelta(hours=2))
    await announce_deadlines(place.store, place.clock)
    (letter,) = await place.store.outbox.claim("", "test", LEASE, 100)
    everyone = frozenset[str]()
    assert await still_wanted(place.store, place.clock, letter.notification, everyone)
    for moved in (NOON + timedelta(days=9), None):
        await place.store.boards.configure(place.board.id, gpus, moved)
        assert not await still_wanted(place.store, place.clock, letter.notification, everyone)


async def test_a_deadline_is_told_once_and_again_when_it_moves(place: Place) -> None:
    async def reminded(hours: float) -> int:
        deadline = NOON + timedelta(hours=hours)
        await place.store.boards.configure(place.board.id, place.board.gpus, deadline)
        await announce_deadlines(place.store, place.clock)
        return len(await told(place))

    assert await reminded(2) == 0
    await listen(place, ROOM, NotificationKind.DEADLINE)
    assert await reminded(25) == 0
    assert await reminded(2) == 1
    assert await reminded(2) == 0
    assert await reminded(3) == 1


async def test_wishes_change_what_they_name_and_nothing_else(place: Place) -> None:
    wishes = {
        NotificationKind.RECORD: True,
        NotificationKind.DEADLINE: True,
        NotificationKind.LOST_RANK: None,
    }
    assert await set_notifications(place.store, ROOM, wishes) == {
        NotificationKind.RECORD,
        NotificationKind.DEADLINE,
    }
    assert await set_notifications(place.store, ROOM, {NotificationKind.RECORD: False}) == {
        NotificationKind.DEADLINE
    }
    assert await set_notifications(place.store, ROOM, {}) == {NotificationKind.DEADLINE}


def news_to(
    place: Place, addressee: str, kind: NotificationKind = NotificationKind.RECORD
) -> Notification:
    return Notification("k", kind, addressee, place.board.id, "words")


@pytest.mark.parametrize(
    ("addressee", "credentials", "wanted"),
    [
        ("local:ada", frozenset[str](), True),  # the board's creator
        ("local:bob", frozenset[str](), False),
        ("local:bob", frozenset({"discord-role:5"}), True),
        (ROOM, frozenset({"discord-guild:1"}), False),
    ],
)
async def test_of_a_hidden_board_only_those_are_told_who_see_it(
    place: Place, *, addressee: str, credentials: frozenset[str], wanted: bool
) -> None:
    await place.person("bob")
    await place.store.boards.restrict(place.board.id, Access(Visibility.PRIVATE))
    await place.store.boards.invite(place.board.id, frozenset({"discord-role:5"}))
    await listen(place, addressee, NotificationKind.RECORD)
    news = news_to(place, addressee)
    assert await still_wanted(place.store, place.clock, news, credentials) is wanted


async def test_what_nobody_asks_for_any_more_or_comes_too_late_is_not_wanted(place: Place) -> None:
    nothing = frozenset[str]()
    assert not await still_wanted(place.store, place.clock, news_to(place, ROOM), nothing)
    await listen(place, ROOM, NotificationKind.DEADLINE)
    await place.store.boards.configure(place.board.id, place.board.gpus, NOON)
    late = deadline_notification(place.board, NOON, ROOM)
    assert await still_wanted(place.store, place.clock, late, nothing)
    place.clock.advance(1)
    assert not await still_wanted(place.store, place.clock, late, nothing)
    await place.store.boards.delete(place.board.id)
    assert not await still_wanted(place.store, place.clock, late, nothing)


async def test_news_is_worked_out_until_told_to_stop_whatever_the_database_does(
    place: Place,
) -> None:
    await listen(place, ROOM, NotificationKind.RECORD)
    await ran(place, "ada", 100)
    away = {"unannounced": 2}
    stop = asyncio.Event()
    store = failing(place.store, away, "outbox")
    telling = asyncio.create_task(run_notifications(store, place.clock, stop, every_s=0.01))
    await asyncio.sleep(0.1)
    stop.set()
    await asyncio.wait_for(telling, 1)
    assert len(await place.store.outbox.claim("discord", "test", LEASE)) == 1


async def make_competition(place: Place, opens: timedelta, closes: timedelta | None) -> Competition:
    """A competition of one board that opens and closes after this time."""
    now = place.clock.now()
    request = PublishRequest(
        place.ada,
        "cup-board",
        ("CPU",),
        None if closes is None else now + closes,
        rules=SeasonRules(now + opens),
    )
    board = (await publish(place.store, place.clock, request, make_task())).board
    new = NewCompetition("Cup", place.ada, "", PointsRule(), now + opens, (board.id,))
    return await place.store.competitions.put(new)


async def test_a_competition_is_announced_once_when_it_opens_and_once_when_it_closes(
    place: Place,
) -> None:
    await listen(place, ROOM, NotificationKind.COMPETITION)
    await make_competition(place, timedelta(hours=1), timedelta(hours=2))
    await announce_competitions(place.store, place.clock)
    assert await told(place) == []
    place.clock.advance(3600)
    for _ in range(2):
        await announce_competitions(place.store, place.clock)
    text = "Competition Cup is open, with 1 board, until 2026-11-01 14:00 UTC."
    assert await told(place) == [(ROOM, text)]
    place.clock.advance(3601)
    for _ in range(2):
        await announce_competitions(place.store, place.clock)
    closed = "Competition Cup has closed. Runs that are still queued will count."
    assert await told(place) == [(ROOM, closed), (ROOM, text)]


async def test_a_competition_is_not_announced_again_to_later_subscribers(place: Place) -> None:
    await make_competition(place, timedelta(seconds=1), None)
    place.clock.advance(1)
    await announce_competitions(place.store, place.clock)
    await listen(place, ROOM, NotificationKind.COMPETITION)
    await announce_competitions(place.store, place.clock)
    assert await told(place) == []


async def test_a_competition_that_closes_again_is_announced_again(place: Place) -> None:
    await listen(place, ROOM, NotificationKind.COMPETITION)
    made = await make_competition(place, timedelta(seconds=1), timedelta(hours=1))
    place.clock.advance(3601)
    await announce_competitions(place.store, place.clock)
    assert len(await told(place)) == 2
    until = place.clock.now() + timedelta(hours=1)
    await place.store.boards.configure(made.boards[0].id, ("CPU",), until)
    await announce_competitions(place.store, place.clock)
    place.clock.advance(3601)
    await announce_competitions(place.store, place.clock)
    closed = [text for _, text in await told(place) if "closed" in text]
    assert len(closed) == 2


async def test_an_announcement_that_is_interrupted_is_made_by_the_next_process(
    place: Place,
) -> None:
    await listen(place, ROOM, NotificationKind.COMPETITION)
    await make_competition(place, timedelta(seconds=1), None)
    place.clock.advance(1)
    with pytest.raises(StoreError):
        await announce_competitions(failing(place.store, {"put": 1}, "outbox"), place.clock)
    found = await place.store.competitions.find("Cup")
    assert found is not None
    assert found.opening_announced is None
    await announce_competitions(place.store, place.clock)
    assert await told(place) == [(ROOM, "Competition Cup is open, with 1 board.")]


async def test_the_announcement_of_a_private_competition_is_only_for_its_guests(
    place: Place,
) -> None:
    made = await make_competition(place, timedelta(seconds=1), None)
    await place.store.boards.restrict(made.boards[0].id, Access(Visibility.PRIVATE))
    await listen(place, ROOM, NotificationKind.COMPETITION)
    place.clock.advance(1)
    await announce_competitions(place.store, place.clock)
    (letter,) = await place.store.outbox.claim("", "test", LEASE, 100)
    assert not await still_wanted(place.store, place.clock, letter.notification, frozenset())
    await place.store.boards.restrict(made.boards[0].id, Access())
    assert await still_wanted(place.store, place.clock, letter.notification, frozenset())


async def test_the_announcement_of_an_opening_tells_nothing_of_hidden_boards(place: Place) -> None:
    await listen(place, ROOM, NotificationKind.COMPETITION)
    made = await make_competition(place, timedelta(seconds=1), timedelta(hours=3))
    place.clock.advance(2)
    request = PublishRequest(
        place.ada, "secret", ("CPU",), access=Access(source=SourceVisibility.ALWAYS)
    )
    secret = (await publish(place.store, place.clock, request, make_task(name="secret"))).board
    await place.store.boards.restrict(secret.id, Access(Visibility.PRIVATE))
    await place.store.boards.restrict(
        made.boards[0].id, Access(source=SourceVisibility.ALWAYS)
    )  # it is public all the same
    boards = (secret.id, made.boards[0].id)
    new = NewCompetition("Cup", place.ada, "", PointsRule(), made.opens_at, boards)
    await place.store.competitions.put(new, made.id)
    await announce_competitions(place.store, place.clock)
    (letter,) = await place.store.outbox.claim("", "test", LEASE, 100)
    assert (letter.notification.text, letter.notification.board) == (
        "Competition Cup is open.",
        made.boards[0].id,
    )


async def test_the_deadline_of_a_board_that_has_not_opened_is_told_later(place: Place) -> None:
    await listen(place, ROOM, NotificationKind.DEADLINE)
    await make_competition(place, timedelta(hours=1), timedelta(hours=5))
    await announce_deadlines(place.store, place.clock)
    assert await told(place) == []
    place.clock.advance(3601)
    await announce_deadlines(place.store, place.clock)
    assert len(await told(place)) == 1
