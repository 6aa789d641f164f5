"""A guild with people, and Podium beside it as a process of its own, on real Postgres."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.doubles.discord.limits import Rates
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.process import BotProcess, podium_command
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium, fresh, timed_briefly

UP = podium_command("up")
START_S = 60
QUICK = 0.05
"""The scale of rate windows where they are not what is tested."""
GPUS = "fake:CPU=2:H100=2:L4=1"


@dataclass(repr=False)
class Scene:
    """Alice and bob are members, carol is an admin; dana sees `/admin` but may not use it.

    All are in #submissions.
    """

    podium: Podium
    server: LocalDiscord
    guild: Guild
    submissions: Channel
    alice: Person
    bob: Person
    carol: Person
    dana: Person
    bot: BotProcess

    async def submit(
        self, who: Person, directive: str = "", mode: str = "ranked", **options: str
    ) -> Interaction:
        """Give the command, and wait for its first answer."""
        script = kernel(directive, options.pop("name", "kernel.py"))
        given = {"leaderboard_name": "identity"} | options
        return await who.slash(f"leaderboard submit {mode}", script=script, **given)


def kernel(directive: str = "", name: str = "kernel.py") -> File:
    """A file whose fate the fake runner reads in its first line."""
    text = f"# fake: {directive}\n" if directive else ""
    return File(name, f"{text}def custom_kernel(data):\n    return data\n".encode())


@asynccontextmanager
async def scene(
    runner: str = GPUS,
    *,
    gpus: tuple[str, ...] = ("CPU",),
    rates: Rates | None = None,
    permissions: Permission = Permission.ADMINISTRATOR,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Scene]:
    """Everything running, with a board `identity`; refused requests are the test's to judge."""
    with fresh(runner) as podium:
        podium.environment.update(settings or {})
        chosen = [word for gpu in gpus for word in ("--gpu", gpu)]
        identity = timed_briefly(IDENTITY, podium.folder)
        published = podium("task", "publish", identity, "--unchecked", *chosen)
        assert published.returncode == 0, published.stderr
        async with (
            LocalDiscord(rates=rates or Rates(QUICK)) as server,
            _started(podium, server, permissions) as found,
        ):
            if runner == "local":
                await _worker_connected(podium)
            yield found


async def _worker_connected(podium: Podium) -> None:
    """Wait until the worker offers its GPU types, without which no board can be made."""
    for _ in range(START_S):
        if "CPU" in (await asyncio.to_thread(podium, "runners")).stdout:
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("no worker is connected")


@asynccontextmanager
async def _started(
    podium: Podium, server: LocalDiscord, permissions: Permission
) -> AsyncIterator[Scene]:
    guild = server.guild("gpu", permissions)
    room = guild.create_channel("submissions")
    admin = guild.create_role("Leaderboard Admin", Permission.MANAGE_THREADS)
    people = server.user("alice", guild), server.user("bob", guild)
    carol = server.user("carol", guild, roles=[admin])
    moderator = guild.create_role("moderator", Permission.MANAGE_THREADS)
    dana = server.user("dana", guild, roles=[moderator])
    for person in (*people, carol, dana):
        person.goes_to(room)
    log = podium.folder / "bot.log"
    environment = podium.environment | {"DISCORD_TRUSTED_GUILDS": str(guild.id)}
    async with server.spawn(UP, log, environment=environment) as bot:
        await server.wait_for(lambda: server.syncs, START_S)
        yield Scene(podium, server, guild, room, *people, carol, dana, bot)
