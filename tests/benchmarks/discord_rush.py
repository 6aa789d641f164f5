"""Prints how the Discord bot shows a rush of ranked runs at Discord's own rates.

python -m tests.benchmarks.discord_rush [--runs 1000] [--minutes 10] [--boards 3] [--people 1000]

Each person submits to each board in turn. The local Discord enforces its limits: 50 requests per
second, five messages in five seconds and ten new threads in ten seconds per channel, 1,000 active
threads. Exit 1 if a target is missed.
"""

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg

from tests.doubles.databases import fresh_database
from tests.doubles.discord.errors import NotAnsweredError
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium
from tests.e2e.discord.scene import START_S, UP, kernel

ACKNOWLEDGED_S, ANSWERED_S, SHOWN_S = 1.0, 30.0, 600.0
"""The targets: p99 of the acknowledgements, then the slowest report and the slowest line."""
STORED = re.compile(r"#(\d+)")


@dataclass
class Rush:
    """The runs of many people, and when each report and line was seen."""

    server: LocalDiscord
    room: Channel
    people: list[Person]
    runs: dict[int, Interaction] = field(default_factory=dict)
    answered: dict[int, float] = field(default_factory=dict)
    reported: dict[int, float] = field(default_factory=dict)
    lines: dict[int, float] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    """How many messages of each thread were looked at."""
    refusals: list[str] = field(default_factory=list)

    async def submit(self, number: int, board: str, at: float) -> None:
        """Submit one ranked kernel at that time."""
        await asyncio.sleep(max(0.0, at - time.monotonic()))
        person = self.people[number % len(self.people)]
        time_us = random.Random(number).uniform(10, 1000)  # noqa: S311  no secret
        script = kernel(f"time_us={time_us:.3f} seconds=1", f"k{number}.py")
        try:
            run = await person.slash(
                "leaderboard submit ranked", script=script, leaderboard_name=board
            )
        except NotAnsweredError as error:
            self.refusals.append(str(error))
            return
        said = (await run.final(60)).text
        found = STORED.search(said)
        if found is None:
            self.refusals.append(said)
            return
        self.runs[int(found[1])] = run

    async def watch(self, until: asyncio.Event) -> None:
        """Record when each report and each line appears."""
        while not until.is_set():
            self.look(time.time())
            await asyncio.sleep(0.25)

    def look(self, now: float) -> None:
        """Record new reports and lines."""
        for number, run in self.runs.items():
            if number not in self.answered and f"**submission #{number}:" in run.message.text:
                self.answered[number] = now
        for thread in self.room.threads:
            messages = thread.messages
            for each in messages[self.seen.get(thread.id, 0) :]:
                found = re.search(r"ubmission #(\d+)", each.content)
                if found is not None:
                    table = self.reported if thread.private else self.lines
                    table.setdefault(int(found[1]), each.created)
            self.seen[thread.id] = len(messages)


async def judged(dsn: str) -> dict[int, float]:
    """When the result of each submission was stored."""
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch("select submission, at from evaluations")
    finally:
        await connection.close()
    return {row["submission"]: row["at"].timestamp() for row in rows}


async def displayed(dsn: str, within: float) -> int:
    """Wait until every display is finished; return how many are not."""
    connection = await asyncpg.connect(dsn)
    try:
        end = time.monotonic() + within
        while True:
            left = await connection.fetchval(
                "select count(*) from displays where finished_at is null"
            )
            if not left or time.monotonic() > end:
                return int(left)
            await asyncio.sleep(1)
    finally:
        await connection.close()


def at(share: float, values: list[float]) -> float:
    """Return a quantile."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def row(name: str, values: list[float], target: str) -> None:
    """Print one line of the table."""
    spread = " ".join(f"{at(share, values):9.2f}" for share in (0.5, 0.99, 1.0))
    print(f"{name:>28} {len(values):6} {spread}  {target}")


async def measure(arguments: argparse.Namespace, folder: Path) -> bool:
    """Play one rush; return whether every target was met."""
    runs, boards = arguments.runs, [f"board-{n}" for n in range(arguments.boards)]
    async with fresh_database() as dsn, LocalDiscord() as server:
        podium = Podium(folder, "fake:CPU=16", DATABASE_URL=dsn)
        podium.environment["PODIUM_CONFIRM_PLACES"] = "false"
        for board in boards:
            published = podium("task", "publish", IDENTITY, "--unchecked", "--name", board)
            if published.returncode:
                sys.exit(published.stderr)
        guild = server.guild("gpu")
        room = guild.create_channel("submissions")
        people = [server.user(f"p{n}", guild) for n in range(arguments.people)]
        for person in people:
            person.goes_to(room)
        async with server.spawn(UP, folder / "bot.log", environment=podium.environment):
            await server.wait_for(lambda: server.syncs, START_S)
            rush, over = Rush(server, room, people), asyncio.Event()
            watching = asyncio.create_task(rush.watch(over))
            begin, pace_s = time.monotonic(), 60 * arguments.minutes / runs
            await asyncio.gather(
                *(rush.submit(n, boards[n % len(boards)], begin + n * pace_s) for n in range(runs))
            )
            left = await displayed(dsn, 1.5 * SHOWN_S)
            rush.look(time.time())
            over.set()
            await watching
            entries = {(n % len(people), n % len(boards)) for n in range(runs)}
            return report(rush, await judged(dsn), left, len(entries))


def report(rush: Rush, ended: dict[int, float], left: int, entries: int) -> bool:
    """Print the table; return whether every target was met, and each first entry has its line."""

    def after_result(seen: dict[int, float]) -> list[float]:
        return [seen[each] - ended[each] for each in seen if each in ended]

    acknowledged = [each.latency for each in rush.runs.values()]
    answered, reported, lines = map(after_result, (rush.answered, rush.reported, rush.lines))
    private = [each for each in rush.room.threads if each.private]
    refused = Counter(each.summary().split(" -> ")[1] for each in rush.server.refused)
    print(f"{len(rush.runs)} runs of {len(rush.people)} people, load {os.getloadavg()[0]:.2f}")
    print(f"{'':>28} {'count':>6} {'p50 s':>9} {'p99 s':>9} {'most s':>9}  target")
    row("acknowledged", acknowledged, f"p99 < {ACKNOWLEDGED_S:.0f} s")
    row("result to report in answer", answered, f"each < {ANSWERED_S:.0f} s")
    row("result to report in thread", reported, f"each < {SHOWN_S:.0f} s")
    row("result to public line", lines, f"each < {SHOWN_S:.0f} s")
    active = sum(not each.archived for each in rush.room.threads)
    print(
        f"private threads: {len(private)}, public: {len(rush.room.threads) - len(private)}, "
        f"active at the end: {active}, messages in the channel: {len(rush.room.messages)}"
    )
    print(
        f"direct messages: {sum(len(each.dms) for each in rush.people)}, requests: "
        f"{len(rush.server.requests)}, refused: {sum(refused.values())} {dict(refused) or ''}"
    )
    print(
        f"not answered or stored: {len(rush.refusals)} {rush.refusals[:1]}, "
        f"displays not finished: {left}"
    )
    whole = len(rush.answered) == len(rush.reported) == len(rush.runs) > 0
    whole = whole and len(rush.lines) >= entries
    soon = at(0.99, acknowledged) < ACKNOWLEDGED_S and at(1.0, answered) < ANSWERED_S
    late = at(1.0, [*reported, *lines]) < SHOWN_S
    return whole and soon and late and not (refused or left or rush.refusals)


def main() -> None:
    """Measure on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--boards", type=int, default=3)
    parser.add_argument("--people", type=int, default=1000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        sys.exit(not asyncio.run(measure(arguments, folder)))


if __name__ == "__main__":
    main()
