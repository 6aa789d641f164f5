"""Who goes on with a release after a kill neither publishes nor tells a thing twice."""

import io
import zipfile
from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.domain.ids import TaskVersionId
from bot.domain.release import NewRelease, Release
from bot.domain.scaffold import scaffold
from bot.frontends.discord.door import DOOR, Door
from bot.frontends.discord.publication_thread.poster import Proof
from bot.frontends.discord.wishes import Stand
from bot.services.publishing.engine import MOST_TRIES, TakenOverError
from bot.services.publishing.publish import NO_BOARD, publish
from bot.services.publishing.request import WISH, Wish, read
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)
STAND = Stand(channel=1, user=2, thread=3, live=4)


def packed(**changed: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in {**scaffold("double"), **changed}.items():
            made.writestr(f"double/{name}", text)
    return archive.getvalue()


class Room:
    """Stands in for Discord: keeps what is sent."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.client = Mock(spec=discord.Client)
        self.client.get_partial_messageable.return_value.send = AsyncMock(side_effect=self._take)
        message = self.client.get_partial_messageable.return_value.get_partial_message.return_value
        message.edit = AsyncMock()
        channel = Mock(spec=discord.TextChannel, send=AsyncMock(side_effect=self._take))
        channel.permissions_for.return_value = discord.Permissions.all()
        self.client.get_channel.return_value = channel

    async def _take(self, content: str, **_: object) -> None:
        self.said.append(content)


async def claimed(place: Place, stand: Stand, onto: TaskVersionId = NO_BOARD) -> Release:
    wish = Wish(place.ada, "double", ("CPU",), None, onto=onto)
    new = NewRelease(
        DOOR, place.ada, packed(), WISH.dump_json(wish).decode(), stand.model_dump_json()
    )
    await place.store.releases.add(new)
    (release,) = await place.store.releases.claim(DOOR, "one", LEASE)
    return release


async def publish_as_before(place: Place, release: Release) -> None:
    """What the killed process had done."""
    wish = WISH.validate_json(release.wish)
    _, parsed = await read(release.zip, wish)
    await publish(place.store, place.clock, wish.request(parsed.task))


def proof(place: Place, room: Room, release: Release, owner: str = "one") -> Proof:
    return Proof.of(room.client, Door(place.store, place.clock), owner, release)


async def test_what_was_published_before_a_kill_is_told_as_published(place: Place) -> None:
    release = await claimed(place, STAND.model_copy(update={"publishing": True}))
    await publish_as_before(place, release)
    room = Room()
    await proof(place, room, release).run()
    assert "double on CPU is published." in room.said[0]
    assert "**New leaderboard: double**" in room.said[1]
    board = await place.store.boards.find("double")
    assert board is not None
    assert len(await place.store.boards.versions(board.id)) == 1
    assert await place.store.releases.claim(DOOR, "two", timedelta(0)) == ()


async def test_who_had_not_begun_to_publish_is_refused_a_name_that_is_taken(place: Place) -> None:
    release = await claimed(place, STAND)
    await publish_as_before(place, release)
    room = Room()
    await proof(place, room, release).run()
    (told,) = room.said
    assert "there is a leaderboard 'double' already" in told


async def test_only_what_is_not_told_yet_is_told(place: Place) -> None:
    release = await claimed(place, STAND.model_copy(update={"publishing": True}))
    await publish_as_before(place, release)
    half = proof(place, Room(), release)
    await half.run()
    again = await claimed(place, half.stand.model_copy(update={"announced": False}))
    room = Room()
    await proof(place, room, again).run()
    assert ["New leaderboard" in each for each in room.said] == [True]


async def test_what_ends_with_the_bot_again_and_again_is_given_up(place: Place) -> None:
    release = await claimed(place, STAND)
    for _ in range(MOST_TRIES):
        place.clock.advance(31)
        (release,) = await place.store.releases.claim(DOOR, "one", LEASE)
    room = Room()
    await proof(place, room, release).run()
    assert f"begun {MOST_TRIES} times" in room.said[0]
    assert await place.store.boards.find("double") is None


async def test_who_has_lost_the_release_stops(place: Place) -> None:
    release = await claimed(place, STAND.model_copy(update={"publishing": True}))
    await publish_as_before(place, release)
    room = Room()
    with pytest.raises(TakenOverError):
        await proof(place, room, release, owner="late").run()
    assert room.said == []
