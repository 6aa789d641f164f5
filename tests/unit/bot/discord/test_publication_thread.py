"""A process that goes on with a publication after a kill neither publishes nor posts twice."""

import io
import zipfile
from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.discord.context import FRONT_END, DiscordContext
from bot.discord.publication_thread import PublicationPoster, PublicationThread, run_publications
from bot.domain.ids import PublicationId, TaskVersionId
from bot.domain.publication import NewPublication, PublishRequest
from bot.domain.tasks.lint import CheckStep
from bot.domain.tasks.scaffold import scaffold
from bot.services.publishing import engine
from bot.services.publishing.engine import MAX_ATTEMPTS
from bot.services.publishing.publish import NO_BOARD, REQUEST, publish, read_upload
from bot.services.publishing.state import (
    HeldPublication,
    PublicationOutcome,
    PublicationState,
    TakenOverError,
)
from tests.doubles.dispatching import until
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)
THREAD = PublicationThread(channel=1, user=2, thread=3, live=4)
PUBLISHING = PublicationState(publishing=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "POLL_S", 0.01)


def packed() -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in scaffold("double").items():
            made.writestr(f"double/{name}", text)
    return archive.getvalue()


class Room:
    """Stands in for Discord: keeps what is sent."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.client = Mock(spec=discord.Client, wait_until_ready=AsyncMock())
        self.client.get_partial_messageable.return_value.send = AsyncMock(side_effect=self._take)
        message = self.client.get_partial_messageable.return_value.get_partial_message.return_value
        message.edit = self.edit = AsyncMock()
        channel = Mock(spec=discord.TextChannel, send=AsyncMock(side_effect=self._take))
        channel.permissions_for.return_value = discord.Permissions.all()
        self.client.get_channel.return_value = channel

    async def _take(self, content: str, **_: object) -> None:
        self.said.append(content)


async def left(
    place: Place,
    state: PublicationState,
    thread: PublicationThread = THREAD,
    *,
    onto: TaskVersionId = NO_BOARD,
    kills: int = 1,
) -> PublicationId:
    """A publication as so many processes left it, each killed while it held it."""
    request = PublishRequest(place.ada, "double", ("CPU",), onto=onto)
    stored, publications = REQUEST.dump_json(request).decode(), place.store.publications
    new = NewPublication(FRONT_END, place.ada, packed(), stored, thread.model_dump_json())
    number = await publications.add(new)
    for _ in range(kills):
        await publications.claim(FRONT_END, "killed", LEASE)
        await publications.save_state(number, "killed", state=state.model_dump_json())
        place.clock.advance(31)
    return number


async def publish_as_before(place: Place) -> None:
    """What the killed process had done."""
    request = PublishRequest(place.ada, "double", ("CPU",), onto=NO_BOARD)
    _, parsed = await read_upload(packed(), request)
    await publish(place.store, place.clock, request, parsed.task)


async def run(place: Place, room: Room, number: PublicationId) -> None:
    """Until the publication has ended."""

    async def over() -> bool:
        found = await place.store.publications.summary(FRONT_END, number)
        return found is not None and found.ended_at is not None

    async with run_publications(room.client, DiscordContext(place.store, place.clock)):
        await until(over)


async def test_what_was_published_before_a_kill_is_told_as_published(place: Place) -> None:
    number = await left(place, PUBLISHING)
    await publish_as_before(place)
    room = Room()
    await run(place, room, number)
    assert "double on CPU is published." in room.said[0]
    assert "**New leaderboard: double**" in room.said[1]
    board = await place.store.boards.find("double")
    assert board is not None
    assert len(await place.store.boards.versions(board.id)) == 1
    assert await place.store.publications.claim(FRONT_END, "two", timedelta(0)) == ()


async def test_who_had_not_begun_to_publish_is_refused_a_name_that_is_taken(place: Place) -> None:
    number = await left(place, PublicationState())
    await publish_as_before(place)
    room = Room()
    await run(place, room, number)
    (told,) = room.said
    assert "leaderboard 'double' already exists" in told


async def test_only_what_is_not_told_yet_is_told(place: Place) -> None:
    await publish_as_before(place)
    board = await place.store.boards.find("double")
    assert board is not None
    outcome = PublicationOutcome(title="t", message="done", board=board.id, change="created")
    state = PublicationState(publishing=True, outcome=outcome)
    room = Room()
    await run(place, room, await left(place, state, THREAD.model_copy(update={"told": 1})))
    assert ["New leaderboard" in each for each in room.said] == [True]
    quiet = Room()
    announced = THREAD.model_copy(update={"told": 1, "announced": True})
    await run(place, quiet, await left(place, state, announced))
    assert quiet.said == []


async def test_what_ends_with_the_bot_again_and_again_is_given_up(place: Place) -> None:
    number = await left(place, PublicationState(), kills=MAX_ATTEMPTS)
    room = Room()
    await run(place, room, number)
    assert f"started {MAX_ATTEMPTS} times" in room.said[0]
    assert await place.store.boards.find("double") is None


async def test_who_has_lost_the_publication_posts_nothing_more(place: Place) -> None:
    await left(place, PublicationState())
    publications = place.store.publications
    (release,) = await publications.claim(FRONT_END, "one", LEASE)
    room = Room()
    held = HeldPublication(place.store, "late", release, PublishRequest(place.ada, "double"))
    poster = PublicationPoster.of(room.client, DiscordContext(place.store, place.clock), held)
    outcome = PublicationOutcome(title="t", message="no")
    with pytest.raises(TakenOverError):
        await poster.finished(PublicationState(outcome=outcome))
    assert len(room.said) == 1
    (again,) = await publications.claim(FRONT_END, "two", timedelta(0)) or (release,)
    assert PublicationThread.model_validate_json(again.place).told == 0


async def test_a_refused_outcome_is_sent_directly(place: Place) -> None:
    number = await left(place, PublicationState(), kills=MAX_ATTEMPTS)
    room, refused = Room(), Mock(status=400, reason="")
    error = discord.HTTPException(refused, {"code": 50035, "message": "no"})
    send = room.client.get_partial_messageable.return_value.send
    send.side_effect = [error, *(Mock(id=number) for number in range(9))]
    room.client.get_partial_messageable.return_value.id = 99
    person = await place.store.people.ensure(f"discord:{THREAD.user}", "ada")
    await place.store.displays.save_conversation(person.id, "99")
    await run(place, room, number)
    assert f"started {MAX_ATTEMPTS} times" in send.await_args.args[0]
    room.client.create_dm.assert_not_called()
    assert room.client.get_partial_messageable.call_args.args == (99,)


async def test_a_refused_outcome_begins_no_direct_messages(place: Place) -> None:
    number = await left(place, PublicationState(), kills=MAX_ATTEMPTS)
    room, refused = Room(), Mock(status=400, reason="")
    error = discord.HTTPException(refused, {"code": 50035, "message": "no"})
    room.client.get_partial_messageable.return_value.send.side_effect = error
    await run(place, room, number)
    room.client.create_dm.assert_not_called()
    room.client.get_partial_messageable.return_value.send.assert_awaited_once()


async def test_the_live_message_has_the_steps_of_the_state(place: Place) -> None:
    await left(place, PublicationState())
    (release,) = await place.store.publications.claim(FRONT_END, "one", LEASE)
    room = Room()
    held = HeldPublication(place.store, "one", release, PublishRequest(place.ada, "double"))
    poster = PublicationPoster.of(room.client, DiscordContext(place.store, place.clock), held)
    steps = (CheckStep("CPU", "a.py", "test", 1, 2),)
    await poster.changed(PublicationState(steps=steps))
    outcome = PublicationOutcome(title="t", message="no")
    await poster.finished(PublicationState(steps=steps, outcome=outcome))
    during, after = [sent for _, sent in room.edit.await_args_list]
    assert "a.py: test 1/2" in during["content"]
    assert [each.item.label for each in during["view"].children] == ["Cancel"]
    assert "0 of 1 runs have ended, 1 stopped" in after["content"]
    assert after["view"] is None
