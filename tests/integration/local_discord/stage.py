"""A guild with people and channels, a bot beside it, and requests by hand."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.architecture.tree import ROOT
from tests.doubles.discord.errors import NotAnsweredError
from tests.doubles.discord.limits import Rates
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.process import BotProcess, program
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.wire import Json

BOT = program(
    sys.executable, "-m", "tests.doubles.discord.redirect",
    "-m", "tests.integration.local_discord.demo_bot",
)  # fmt: skip
ENOUGH_S = 1.0
"""Longer than the demo bot needs for any answer."""
QUICK = 0.05
"""The scale of rate windows where they are not what is tested."""


class Stage:
    """One guild; alice and bob are members, carol is staff; all of them are in `lab`."""

    def __init__(
        self, server: LocalDiscord, permissions: Permission = Permission.ADMINISTRATOR
    ) -> None:
        self.server = server
        self.guild: Guild = server.guild("gpu", permissions)
        self.lab = self.guild.create_channel("lab")
        self.public = self.guild.create_channel("public-lab")
        self.staff = self.guild.create_role("Staff", Permission.MANAGE_GUILD)
        self.alice = server.user("alice", self.guild)
        self.bob = server.user("bob", self.guild)
        self.carol = server.user("carol", self.guild, roles=[self.staff])
        for person in (self.alice, self.bob, self.carol):
            person.goes_to(self.lab)


@dataclass(repr=False)
class Played:
    """A stage with its bot."""

    stage: Stage
    bot: BotProcess

    @property
    def server(self) -> LocalDiscord:
        return self.stage.server


@asynccontextmanager
async def with_bot(stage: Stage, log: Path) -> AsyncIterator[Played]:
    """The demo bot, started and with its commands registered."""
    server = stage.server
    async with server.spawn(BOT, log, environment={"PYTHONPATH": str(ROOT)}) as bot:
        await server.wait_for(lambda: server.syncs, 10)
        yield Played(stage, bot)


@asynccontextmanager
async def played(log: Path) -> AsyncIterator[Played]:
    async with LocalDiscord(rates=Rates(QUICK)) as server, with_bot(Stage(server), log) as play:
        yield play


async def times_out(server: LocalDiscord, action: Coroutine[Any, Any, object]) -> None:
    """The action of a person gets no answer, though the bot had its time."""
    asked = asyncio.create_task(action)
    await asyncio.sleep(ENOUGH_S)
    server.clock.advance(server.world.limits.response_deadline)
    with pytest.raises(NotAnsweredError):
        await asked


@dataclass
class Answered:
    """What a request by hand got."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> int:
        return int(self.body["code"]) if isinstance(self.body, dict) and "code" in self.body else 0

    @property
    def wrongs(self) -> set[str]:
        """Codes of everything that is wrong with the body."""
        return set(_codes(self.body.get("errors", {})))


def _codes(errors: Json) -> Iterator[str]:
    for key, value in errors.items():
        if key == "_errors":
            yield from (each["code"] for each in value)
        else:
            yield from _codes(value)


@dataclass(repr=False)
class ByHand:
    """A stage without a bot: what discord.py would never send is sent by hand."""

    stage: Stage
    session: aiohttp.ClientSession

    @property
    def server(self) -> LocalDiscord:
        return self.stage.server

    async def __call__(
        self, method: str, path: str, body: object = None, *, token: str | None = None
    ) -> Answered:
        headers = {"Authorization": f"Bot {token or self.server.token}"}
        url = self.server.api_base + path
        async with self.session.request(method, url, json=body, headers=headers) as response:
            text = await response.json(content_type=None) if response.status != 204 else None
            return Answered(response.status, text, dict(response.headers))

    async def say(self, channel: Channel | None = None, /, **body: object) -> Answered:
        where = channel or self.stage.lab
        return await self("POST", f"/channels/{where.id}/messages", body)


@asynccontextmanager
async def by_hand(
    permissions: Permission = Permission.ADMINISTRATOR, scale: float = 0
) -> AsyncIterator[ByHand]:
    async with LocalDiscord(rates=Rates(scale)) as server, aiohttp.ClientSession() as session:
        yield ByHand(Stage(server, permissions), session)
