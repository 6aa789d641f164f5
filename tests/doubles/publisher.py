"""A process that publishes for both front ends and stops in one state, in which a test kills it.

`python -m tests.doubles.publisher DSN POSTS STATE` prints a line for each publication that has
reached STATE.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import discord

from bot.app.context import SystemClock
from bot.discord import publication_thread
from bot.discord.context import DiscordContext
from bot.discord.publication_thread import PublicationThread
from bot.domain.ids import PersonId, PublicationId
from bot.domain.publication import NewPublication, PublishRequest
from bot.ports import Store
from bot.services.publishing import engine, pipeline
from bot.services.publishing.publish import NO_BOARD, REQUEST
from bot.store.postgres import open_store
from bot.web import publications
from tests.doubles.agents import make_door
from tests.doubles.dispatching import dispatching
from tests.doubles.scaffolded import make_judge
from tests.doubles.task_zips import packed

LEASE = timedelta(seconds=1)
STATES = ("read", "checking", "publishing", "committing", "published", "outcome", "told")


class Posts:
    """Replaces Discord: stores one line per message, and only one for each nonce."""

    def __init__(self, file: Path) -> None:
        self.file = file
        messages = Mock(spec=discord.PartialMessageable, send=AsyncMock(side_effect=self._send))
        messages.get_partial_message.return_value.edit = AsyncMock()
        channel = Mock(spec=discord.TextChannel, send=AsyncMock(side_effect=self._send))
        channel.permissions_for.return_value = discord.Permissions.all()
        self.client = Mock(spec=discord.Client, wait_until_ready=AsyncMock())
        self.client.get_partial_messageable.return_value = messages
        self.client.get_channel.return_value = channel

    async def _send(self, content: str, *, nonce: str, **_: object) -> Mock:
        if nonce not in self.nonces():
            with self.file.open("a") as posts:
                posts.write(f"{nonce}\n")
        return Mock(id=4, content=content)

    def nonces(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []


async def hand_in(store: Store, person: PersonId, door: str, name: str) -> PublicationId:
    """Store the publication of a task for a new board, as a front end does."""
    request = PublishRequest(person, name, ("CPU",), onto=NO_BOARD)
    place = PublicationThread(channel=1, user=2, thread=3).model_dump_json()
    stored = REQUEST.dump_json(request).decode()
    return await store.publications.add(NewPublication(door, person, packed()[2], stored, place))


@asynccontextmanager
async def publishing(store: Store, posts: Posts) -> AsyncIterator[None]:
    """Run the engines of both front ends inside the block."""
    clock = SystemClock()
    web = replace(make_door(store, clock), lease=LEASE)
    room = DiscordContext(store, clock, lease=LEASE)
    async with (
        dispatching(store, clock, [make_judge()], lease=LEASE),
        publications.checking(web),
        publication_thread.run_publications(posts.client, room),
    ):
        yield


def _stop_at(state: str) -> None:
    """Replace one step by one that reports that it was reached and then waits to be killed."""
    before: dict[str, tuple[tuple[object, str], ...]] = {
        "read": ((engine, "read_upload"),),
        "checking": ((pipeline, "check_on"),),
        "publishing": ((pipeline, "publish_all"),),
        "outcome": (
            (publications.StateOnly, "finished"),
            (publication_thread.PublicationPoster, "finished"),
        ),
    }
    after: dict[str, tuple[tuple[object, str], ...]] = {
        "committing": before["publishing"],
        "published": ((pipeline.Pipeline, "check_and_publish"),),
        "told": before["outcome"],
    }
    for holder, name in before.get(state, ()):
        setattr(holder, name, _stopped)
    for holder, name in after.get(state, ()):
        setattr(holder, name, _then_stopped(getattr(holder, name)))


async def _stopped(*_: object, **__: object) -> None:
    print("reached", flush=True)  # noqa: T201 - the test reads it
    await asyncio.Event().wait()


def _then_stopped(step: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[None]]:
    async def both(*given: object, **named: object) -> None:
        await step(*given, **named)
        await _stopped()

    return both


async def _main(dsn: str, posts: str, state: str) -> None:
    _stop_at(state)
    async with open_store(dsn, SystemClock()) as store, publishing(store, Posts(Path(posts))):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
