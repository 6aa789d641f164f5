"""A whole season: people submit while copies of the bot are killed and Discord fails."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from tests.doubles.databases import fresh_database
from tests.doubles.discord.limits import Rates
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.process import BotProcess
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium
from tests.e2e.discord.scene import START_S, UP
from tests.e2e.season.crowd import CPU, OTHER, Crowd, Order, orders
from tests.e2e.season.failures import Failures, Outage
from tests.e2e.season.findings import Findings, Season, examine
from tests.e2e.season.names import names

RESTART_S = 120.0
"""The longest start of a copy, which may begin in an outage."""
OPEN = """
select (select count(*) from displays where finished_at is null)
    + (select count(*) from interactions where done_at is null)
    + (select count(*) from jobs where state in ('queued', 'running'))
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The measures of a season."""

    seed: int
    boards: int
    people: int
    submissions: int
    span_s: float
    """The time over which people submit."""
    kill_every_s: float
    """The interval at which each copy is killed; the two alternate."""
    outages: tuple[Outage, ...]
    settled_s: float
    """How long everything may take to be shown after the last order."""
    scale: float = 1.0
    """A factor for the windows of Discord's rate limits."""


@dataclass(slots=True)
class Copies:
    """Two copies of the bot, each killed again and again."""

    all: tuple[BotProcess, BotProcess]
    every_s: float
    over: asyncio.Event = field(default_factory=asyncio.Event)
    kills: int = 0
    longest_start_s: float = 0.0

    async def kill_all(self) -> None:
        """Kill both in turn until it is over; both are up then."""
        async with asyncio.TaskGroup() as group:
            for number, copy in enumerate(self.all):
                group.create_task(self._kill(copy, self.every_s * (1 + number) / len(self.all)))

    async def _kill(self, copy: BotProcess, first_s: float) -> None:
        next_at = time.monotonic() + first_s
        while not await self._is_over(next_at - time.monotonic()):
            begin = time.monotonic()
            await copy.stop(signal.SIGKILL)
            self.kills += 1
            await copy.start(RESTART_S)
            self.longest_start_s = max(self.longest_start_s, time.monotonic() - begin)
            while next_at < time.monotonic() + 1:  # a slow start skips a kill
                next_at += self.every_s

    async def _is_over(self, within: float) -> bool:
        try:
            await asyncio.wait_for(self.over.wait(), within)
        except TimeoutError:
            return False
        return True


@dataclass(slots=True)
class Outcome:
    """What happened, and what it left."""

    findings: Findings
    failed: Counter[str]
    """Requests that were made to fail, by kind."""
    counts: Counter[str]
    kills: int
    longest_start_s: float
    acknowledged_s: list[float]
    requests: int
    load: float
    wall_s: float
    settled_s: float


async def run(folder: Path, plan: Plan) -> Outcome:
    """Play a season in an empty folder, which a sandbox may enter, and examine what it left."""
    begin = time.monotonic()
    dice = random.Random(plan.seed)  # noqa: S311 - no secret
    boards = [f"board-{number}" for number in range(plan.boards)]
    async with fresh_database() as dsn, LocalDiscord(rates=Rates(plan.scale)) as server:
        people, room = _guild(server, plan.people)
        crowd = Crowd(room, dice)
        failures = Failures(server.faults, plan.seed, plan.outages)
        async with _copies(folder, dsn, server, boards, plan.kill_every_s) as copies:
            await _play(
                plan, crowd, people, orders(dice, boards, plan.submissions), failures, copies
            )
            failures.end()
            settling = time.monotonic()
            left = await _settled(dsn, plan.settled_s)
            settled_s = time.monotonic() - settling
        findings = await examine(Season(server, room, people, dsn, crowd, folder))
        findings.unfinished += left
        all_asked = server.world.interactions.values()
        answered = [x.latency for x in all_asked if x.answered and x.id not in crowd.expired]
        return Outcome(
            findings, failures.hits, crowd.counts, copies.kills, copies.longest_start_s, answered,
            len(server.requests), os.getloadavg()[0], time.monotonic() - begin, settled_s,
        )  # fmt: skip


def _guild(server: LocalDiscord, count: int) -> tuple[list[Person], Channel]:
    guild = server.guild("gpu")
    room = guild.create_channel("submissions")
    people = []
    for number, name in enumerate(names(count)):
        people.append(server.user(f"person{number}", guild, shown=name))
        people[-1].goes_to(room)
    return people, room


@asynccontextmanager
async def _copies(
    folder: Path, dsn: str, server: LocalDiscord, boards: list[str], every_s: float
) -> AsyncIterator[Copies]:
    installed = []
    for number in range(2):
        place = folder / f"copy{number}"
        place.mkdir(mode=0o755)
        installed.append(Podium(place, f"fake:{CPU}=8:{OTHER}=8", DATABASE_URL=dsn))
    for name in boards:
        gpus = (CPU, OTHER) if len(boards) > 1 and name == boards[-1] else (CPU,)
        chosen = [word for gpu in gpus for word in ("--gpu", gpu)]
        made = await asyncio.to_thread(
            installed[0], "task", "publish", IDENTITY, "--unchecked", "--name", name, *chosen
        )
        assert made.returncode == 0, made.stderr
    first, second = (
        server.spawn(UP, each.folder / "bot.log", environment=each.environment)
        for each in installed
    )
    async with first as one, second as two:
        await server.wait_for(lambda: server.syncs, START_S)
        yield Copies((one, two), every_s)


async def _play(
    plan: Plan,
    crowd: Crowd,
    people: list[Person],
    wanted: list[Order],
    failures: Failures,
    copies: Copies,
) -> None:
    """Play the season with all people; outages and kills end with it."""
    failing = asyncio.create_task(failures.run())
    killing = asyncio.create_task(copies.kill_all())
    try:
        async with asyncio.TaskGroup() as group:
            for number, person in enumerate(people):
                mine = wanted[number :: len(people)]
                group.create_task(crowd.live(person, mine, plan.span_s))
        await failing
    finally:
        copies.over.set()
        await killing


async def _settled(dsn: str, within: float) -> list[str]:
    """Wait until nothing is unfinished; return what still is."""
    connection = await asyncpg.connect(dsn)
    try:
        end = time.monotonic() + within
        while left := await connection.fetchval(OPEN):
            if time.monotonic() > end:
                return [f"{left} displays, interactions and jobs are open after {within:.0f} s"]
            await asyncio.sleep(0.25)
    finally:
        await connection.close()
    return []
