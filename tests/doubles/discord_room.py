"""A channel of the local Discord, with discord.py in this process and a store in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import discord
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from bot.discord.channels import SubmissionDisplay as Shown
from bot.discord.client import PodiumClient
from bot.discord.context import FRONT_END, DiscordContext
from bot.discord.displays import DisplayedSubmission
from bot.discord.requests import limit_requests
from bot.discord.submission_steps import ThreadUpdater
from bot.domain.publication import PublishRequest
from bot.domain.submission import NewDisplay, Submission
from bot.services.publishing.publish import publish
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.discord.limits import Limits, Rates
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.people import Role
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.doubles.factories import make_task
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place

OWNER = "this-process"
LEASE = timedelta(seconds=30)


@dataclass(repr=False)
class Room:
    """The channel #submissions with alice and bob in it, and a board in the store."""

    server: LocalDiscord
    guild: Guild
    channel: Channel
    alice: Person
    bob: Person
    client: discord.Client
    place: Place

    @property
    def context(self) -> DiscordContext:
        return DiscordContext(self.place.store, self.place.clock)

    @property
    def steps(self) -> ThreadUpdater:
        return ThreadUpdater(self.client, self.context)

    async def submit(
        self, *, in_guild: bool = True, mode: Mode = Mode.RANKED, user: Person | None = None
    ) -> Submission:
        """Submit as alice or another, to be shown in the channel or in direct messages."""
        user = user or self.alice
        channel = self.channel if in_guild else user.dm
        shown = Shown(channel=channel.id, user=user.id, in_guild=in_guild)
        display = NewDisplay(FRONT_END, shown.model_dump_json())
        who = None
        if user is not self.alice:
            who = (await self.place.store.people.ensure(f"discord:{user.id}", user.name)).id
        return await self.place.submit(person=who, display=display, mode=mode)

    @property
    def members(self) -> list[Person]:
        """Return six people who are in the guild."""
        found = [each.user for each in self.guild.members.values()]
        people = [each for each in found if isinstance(each, Person)]
        others = range(len(people), 6)
        return people + [self.server.user(f"p{number}", self.guild) for number in others]

    async def claim(self, submission: Submission, owner: str = OWNER) -> DisplayedSubmission:
        """Claim the submission's display for an owner."""
        for display in await self.place.store.displays.claim(FRONT_END, owner, LEASE):
            if display.submission == submission.id:
                return DisplayedSubmission.of(display)
        raise LookupError(f"submission {submission.id} has no display that is free")

    @property
    def thread(self) -> Channel:
        """Return the only private thread."""
        (found,) = (each for each in self.channel.threads if each.private)
        return found

    @property
    def results(self) -> Channel:
        """Return the board's public thread."""
        (found,) = (each for each in self.channel.threads if not each.private)
        return found

    async def admin_role(self) -> Role:
        """Return the admin role that the bot creates."""

        def made() -> Role | None:
            roles = self.guild.roles.values()
            return next((each for each in roles if each.name == "Leaderboard Admin"), None)

        found = await self.server.wait_for(made)
        assert found is not None
        return found

    def reports(self, submission: Submission, *places: Channel) -> int:
        """Return how many reports of a submission are in these channels, or in private threads."""
        searched = places or [each for each in self.channel.threads if each.private]
        begin = f"**submission #{submission.id}:"
        lines = [line for each in searched for line in self.first_lines(each)]
        return sum(line.startswith(begin) for line in lines)

    def first_lines(self, channel: Channel) -> list[str]:
        """Return the first line of each message of the bot in a channel."""
        bot = self.server.world.bot
        return [each.content.split("\n")[0] for each in channel.messages if each.author is bot]


@asynccontextmanager
async def room(
    *,
    permissions: Permission = Permission.ADMINISTRATOR,
    limits: Limits | None = None,
    scale: float = 0.0,
    commands: bool = False,
) -> AsyncIterator[Room]:
    """Yield a channel with a connected client.

    `scale` is that of the windows of the rate limits; 0 switches them off. With `commands` the
    client is the bot's own, which answers commands.
    """
    # The ids of interactions contain Discord's time, so the store needs the same time.
    clock = ManualClock(datetime.now(UTC)) if commands else ManualClock()
    store = MemoryStore(clock)
    async with LocalDiscord(rates=Rates(scale), limits=limits) as server:
        guild = server.guild("gpu", permissions)
        channel = guild.create_channel("submissions")
        alice, bob = server.user("alice", guild), server.user("bob", guild)
        for person in (alice, bob):
            person.goes_to(channel)
        ada = (await store.people.ensure(f"discord:{alice.id}", "ada")).id
        published = await publish(store, clock, PublishRequest(ada), make_task())
        place = Place(store, clock, ada, published.board)
        made = _own_client(DiscordContext(store, clock), guild) if commands else _bare_client()
        async with _connected(server, made) as client:
            yield Room(server, guild, channel, alice, bob, client, place)


def _own_client(context: DiscordContext, guild: Guild) -> discord.Client:
    client = PodiumClient(context, frozenset({guild.id}))
    client._connection.guild_ready_timeout = 0.05
    return client


def _bare_client() -> discord.Client:
    intents, silent = discord.Intents(guilds=True), discord.AllowedMentions.none()
    client = discord.Client(
        intents=intents,
        allowed_mentions=silent,
        max_ratelimit_timeout=30.0,
        guild_ready_timeout=0.05,
    )
    limit_requests(client)
    return client


@asynccontextmanager
async def _connected(server: LocalDiscord, client: discord.Client) -> AsyncIterator[discord.Client]:
    base, gateway = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = server.api_base, URL(server.gateway_url)
    try:
        async with client:
            await client.login(server.token)
            connection = asyncio.create_task(client.connect())
            await asyncio.wait_for(client.wait_until_ready(), 10)
            yield client
            await client.close()
            with suppress(asyncio.CancelledError):
                await connection
    finally:
        Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = base, gateway
