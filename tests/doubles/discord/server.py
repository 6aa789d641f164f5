"""A local Discord: REST v10 and gateway v10 on loopback, with people controlled by tests.

The bot under test is a separate process with an unmodified discord.py; `environment` makes it
connect here. The server refuses what Discord would refuse, and records every refusal.
"""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self, TypeVar

from aiohttp import web

from tests.doubles.discord.clock import Clock
from tests.doubles.discord.gateway.connection import Admission
from tests.doubles.discord.gateway.gateway import Gateway
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import Limits, Rates
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.people import Role
from tests.doubles.discord.model.world import Sync, World
from tests.doubles.discord.oauth import OAuth
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.process import Begin, BotProcess, Command
from tests.doubles.discord.rest.api import Record, RestApi
from tests.doubles.discord.rest.faults import Faults
from tests.doubles.discord.rest.rates import RateLimits
from tests.doubles.discord.users.person import Person
from tests.doubles.discord.wire import Json

LOOPBACK = "127.0.0.1"
UPLOADS = 1 << 30
T = TypeVar("T")


class LocalDiscord:
    """The server: an async context manager on a free port."""

    def __init__(
        self,
        *,
        bot_name: str = "podium",
        limits: Limits | None = None,
        rates: Rates | None = None,
        privileged_intents: bool = True,
        port: int = 0,
    ) -> None:
        limits = limits or Limits()
        self.clock, self.port = Clock(), port
        self.world = World(bot_name, limits, self.clock)
        self.token = _token(self.world.bot.id)
        self._admission = Admission(self.world, self.token, privileged_intents=privileged_intents)
        self.gateway = Gateway(self.world, self._admission)
        self.rates = RateLimits(rates or Rates(), limits.global_rate, self.clock)
        self.rest = RestApi(self.world, self._admission, self.rates)
        self.oauth = OAuth(self.world)
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=UPLOADS)
        for path in ("/gateway/", "/"):
            app.router.add_get(path, self.gateway.handle)
        self.oauth.add_to(app)
        self.rest.add_to(app)
        self._runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, LOOPBACK, self.port).start()
        self.port = self._runner.addresses[0][1]
        self._admission.url = self.gateway_url
        self.world.cdn.base = f"http://{LOOPBACK}:{self.port}/cdn"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.faults.lift()
        self.gateway.close(1001)
        await asyncio.sleep(0.01)
        if self._runner:
            await self._runner.cleanup()

    @property
    def api_base(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/api/v10"

    @property
    def authorize_url(self) -> str:
        """The page on which people allow an application to see who they are."""
        return f"http://{LOOPBACK}:{self.port}/oauth2/authorize"

    @property
    def gateway_url(self) -> str:
        return f"ws://{LOOPBACK}:{self.port}/gateway/"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables with which a bot connects here."""
        return {
            "DISCORD_API_BASE": self.api_base,
            "DISCORD_GATEWAY_URL": self.gateway_url,
            "DISCORD_TOKEN": self.token,
        }

    @property
    def faults(self) -> Faults:
        return self.rest.faults

    @property
    def requests(self) -> list[Record]:
        return self.rest.requests

    @property
    def refused(self) -> list[Record]:
        """Every request that broke a rule, without the failures that a test requested."""
        return [record for record in self.requests if record.refused]

    @property
    def commands(self) -> list[Json]:
        return list(self.world.commands.values())

    @property
    def syncs(self) -> list[Sync]:
        """Every bulk overwrite of commands."""
        return self.world.syncs

    def guild(self, name: str, permissions: Permission = Permission.ADMINISTRATOR) -> Guild:
        """A new guild with a channel `general`, and with the bot in it."""
        guild = self.world.create_guild(name, permissions)
        guild.create_channel("general")
        return guild

    def user(
        self, name: str, *guilds: Guild, roles: Collection[Role] = (), shown: str = ""
    ) -> Person:
        """A new person in these guilds, at the first text channel of the first one."""
        person = Person(self.world, self.world.snowflake(), name)
        person.shown = shown
        self.world.users[person.id] = person
        for guild in guilds:
            guild.join(person, *(role for role in roles if role.id in guild.roles))
        texts = [x for guild in guilds[:1] for x in guild.channels if x.kind is ChannelKind.TEXT]
        if texts:
            person.goes_to(texts[0])
        return person

    async def wait_for(self, condition: Callable[[], T], within: float = 5.0) -> T:
        """Return the value of a condition once it holds."""
        return await self.world.wait_for(condition, within)

    def forget(self) -> None:
        """Clear all records, between tests that share a server."""
        self.requests.clear()
        self.rest.unknown.clear()
        self.rest.crashes.clear()
        self.gateway.closes.clear()
        self.rates.forget()
        self.faults.lift()

    def assert_clean(self, *, allowing: Collection[int] = ()) -> None:
        """Fail if the bot broke any rule; `allowing` has error codes to ignore."""
        bad = [record.summary() for record in self.refused if record.code not in allowing]
        bad += [f"the gateway closed with {code}" for code in self.gateway.closes]
        bad += [f"not served here: {request}" for request in self.rest.unknown]
        bad += self.rest.crashes
        assert not bad, "\n".join(bad)

    @asynccontextmanager
    async def spawn(
        self,
        begin: Begin,
        log: Path,
        *,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> AsyncIterator[BotProcess]:
        """Run the bot until the block ends; it has identified when the block begins."""
        merged = {**self.environment, **(environment or {})}
        bot = BotProcess(self.world, self.gateway, Command(begin, log, merged, folder))
        try:
            await bot.start()
            yield bot
        finally:
            await bot.stop()


def _token(number: int) -> str:
    """Return a token that contains the bot's id, which discord.py reads from it."""
    name = base64.b64encode(str(number).encode()).decode().rstrip("=")
    return f"{name}.{secrets.token_urlsafe(4)}.{secrets.token_urlsafe(20)}"
