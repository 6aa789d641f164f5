"""Prints how soon the Discord bot acknowledges many people who submit while a queue is judged.

python -m tests.benchmarks.discord [--people 100] [--jobs 500] [--typing 180]
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from bot.app.context import SystemClock
from bot.domain.submission import NewSubmission
from bot.store.postgres import open_store
from runners.contract.task import Mode
from tests.doubles.databases import fresh_database
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium
from tests.e2e.discord.scene import START_S, UP, kernel

TARGET_S = 1.0
BUSY = "# fake: seconds=20\n"


async def fill(dsn: str, jobs: int) -> None:
    """Store submissions that occupy the fake runner's slots."""
    async with open_store(dsn, SystemClock()) as store:
        (board,) = await store.boards.all()
        busy = await store.people.ensure("local:busy", "busy")
        for _ in range(jobs):
            await store.submissions.add(
                NewSubmission(
                    person=busy.id,
                    board=board.id,
                    task_version=board.task_version,
                    file_name="busy.py",
                    source=BUSY,
                    mode=Mode.RANKED,
                    gpus=("CPU",),
                    priority=10,
                )
            )


async def acknowledged(person: Person) -> tuple[float, float]:
    """Seconds until the first answer, and until the message that the submission is stored."""
    began = time.perf_counter()
    run = await person.slash(
        "leaderboard submit test", script=kernel("time_us=5"), leaderboard_name="identity"
    )
    await run.final()
    return run.latency, time.perf_counter() - began


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    """A connection to the bot's database."""
    database = await asyncpg.connect(dsn)
    try:
        yield database
    finally:
        await database.close()


async def typed(person: Person) -> float:
    """Seconds until the boards are suggested, in a server or in direct messages."""
    began = time.perf_counter()
    found = await person.autocomplete("leaderboard submit test", "leaderboard_name", "ident")
    if not found:
        sys.exit("nothing was suggested")
    return time.perf_counter() - began


async def typed_number(person: Person, number: int) -> float:
    """Seconds until an admin who types a number sees the newest submissions that begin so."""
    began = time.perf_counter()
    found = await person.autocomplete("admin disqualify", "id", str(number))
    assert all(str(each["value"]).startswith(str(number)) for each in found)
    return time.perf_counter() - began


async def measure_typing(people: int, folder: Path) -> None:
    """Measure people who all type at once, first in a server and then in direct messages.

    The board is for members of the server only, so in direct messages the bot has to know them.
    """
    async with fresh_database() as dsn, LocalDiscord() as server:
        podium = Podium(folder, "fake:CPU=1", DATABASE_URL=dsn)
        published = podium("task", "publish", IDENTITY, "--unchecked")
        if published.returncode:
            sys.exit(published.stderr)
        guild = server.guild("gpu")
        room = guild.create_channel("submissions")
        admin = guild.create_role("Leaderboard Admin", Permission.MANAGE_THREADS)
        crowd = [server.user(f"p{n}", guild, roles=[admin]) for n in range(people)]
        for person in crowd:
            person.goes_to(room)
        await fill(dsn, people)
        trusted = {"DISCORD_TRUSTED_GUILDS": str(guild.id)}
        environment = podium.environment | trusted
        async with server.spawn(UP, folder / "bot.log", environment=environment):
            await server.wait_for(lambda: server.syncs, START_S)
            async with connected(dsn) as database:
                await database.execute("update boards set house = $1", f"discord-guild:{guild.id}")
            await asyncio.gather(*(each.slash("leaderboard list") for each in crowd))
            await asyncio.sleep(5)  # so that the bot has read the store
            print(f"{people} people type at once, load {os.getloadavg()[0]:.2f}")
            print(f"{'':>14} {'p50 s':>8} {'p99 s':>8} {'most s':>8}")
            for _ in range(3):
                print(_row("in a server", sorted(await asyncio.gather(*map(typed, crowd)))))
            for _ in range(3):
                numbers = (typed_number(each, n) for n, each in enumerate(crowd, start=1))
                print(_row("a number", sorted(await asyncio.gather(*numbers))))
            for person in crowd:
                person.goes_to(person.dm)
            before = len(server.requests)
            for _ in range(3):
                print(_row("direct", sorted(await asyncio.gather(*map(typed, crowd)))))
            asked = [each.path for each in server.requests[before:] if "callback" not in each.path]
        print(f"target: p99 < 0.3 s; other requests meanwhile: {len(asked)}")


async def measure(people: int, jobs: int, folder: Path) -> None:
    """Measure one crowd of submitters."""
    async with fresh_database() as dsn, LocalDiscord() as server:
        podium = Podium(folder, f"fake:CPU={jobs}", DATABASE_URL=dsn)
        published = podium("task", "publish", IDENTITY, "--unchecked")
        if published.returncode:
            sys.exit(published.stderr)
        await fill(dsn, jobs)
        guild = server.guild("gpu")
        room = guild.create_channel("submissions")
        crowd = [server.user(f"p{n}", guild) for n in range(people)]
        for person in crowd:
            person.goes_to(room)
        async with server.spawn(UP, folder / "bot.log", environment=podium.environment):
            await server.wait_for(lambda: server.syncs, START_S)
            found = await asyncio.gather(*map(acknowledged, crowd))
        print(f"{people} people submit at once beside {jobs} jobs, load {os.getloadavg()[0]:.2f}")
        print(f"{'':>14} {'p50 s':>8} {'p99 s':>8} {'most s':>8}")
        for name, values in zip(("acknowledged", "stored"), zip(*found, strict=True), strict=True):
            print(_row(name, sorted(values)))
        print(f"target: acknowledged p99 < {TARGET_S} s; refused requests: {len(server.refused)}")


def _row(name: str, ordered: list[float]) -> str:
    def at(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return f"{name:>14} {at(0.5):8.3f} {at(0.99):8.3f} {ordered[-1]:8.3f}"


def main() -> None:
    """Measure on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--typing", type=int, help="measure only autocompletion of so many people")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        if arguments.typing:
            asyncio.run(measure_typing(arguments.typing, folder))
        else:
            asyncio.run(measure(arguments.people, arguments.jobs, folder))


if __name__ == "__main__":
    main()
