"""Prints what happens to submissions while Discord fails for minutes, and when all are shown.

python -m tests.benchmarks.outage [--minutes 10] [--kind 500 429 silence] [--people 40]

Acknowledgements still work, because without them no one could submit here. Every other request of
the bot fails. In the first seconds requests are carried out and only their responses are lost. A
request without a response never gets one, even after the outage. Exit 1 if anything was lost, not
shown, shown twice or refused.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from typing_extensions import override

from bot.app.context import SystemClock
from bot.domain.ids import SubmissionId
from bot.ports import Store
from bot.store.postgres import open_store
from tests.doubles.databases import fresh_database
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import IDENTITY, Podium
from tests.e2e.discord.scene import START_S, UP, kernel

KINDS = ("500", "429", "silence")
LOST_ANSWERS_S = 3.0
"""How long requests are carried out while their responses are lost."""
SHOWN_S = 300.0
"""The longest wait for what was not shown."""
RUNS_S = 9.0
"""The longest run of a kernel; the task gives it ten seconds."""


class Outage(Fault):
    """Applies to everything except acknowledgements; with `status` None, no response ever comes."""

    @override
    def applies_to(self, method: str, path: str) -> bool:
        return not self.lifted.is_set() and not path.startswith(("/interactions", "/webhooks"))

    @override
    async def fail(self) -> NoReturn:
        if self.status is None:
            await asyncio.Event().wait()
        await super().fail()


def outage(kind: str) -> Outage:
    """The failure of this kind; Discord never carries out a request that it answers with 429."""
    if kind == "429":
        return Outage(status=429, retry_after=5.0, scope="shared")
    return Outage(status=None if kind == "silence" else int(kind), carried_out=True)


@dataclass
class Trial:
    """One Discord that fails in one way, and its bot."""

    kind: str
    server: LocalDiscord
    store: Store
    room: Channel
    people: list[Person]
    submitted: int = 0
    seconds: dict[int, float] = field(default_factory=dict)
    """How long the kernel of each submission runs."""
    rows: dict[str, str] = field(default_factory=dict)

    async def submit(self, number: int, runs_s: float) -> None:
        """Submit as one person, until the message that the submission is stored."""
        script = kernel(f"time_us={10 + number} seconds={runs_s:.1f}", f"k{number}.py")
        person = self.people[number % len(self.people)]
        run = await person.slash(
            "leaderboard submit ranked", script=script, leaderboard_name="identity"
        )
        said = (await run.final()).text
        assert "is stored" in said, said
        self.submitted += 1
        self.seconds[int(said.split("#")[1].split()[0])] = runs_s

    async def run(self, minutes: float, count: int) -> None:
        """End half of the kernels during the outage, and submit the other half during it."""
        before = count // 2
        for number in range(before):
            await self.submit(number, 3 + (RUNS_S - 3) * number / before)
        await asyncio.sleep(2.0)
        at_begin = await self.stored()
        fault = outage(self.kind)
        with self.server.faults.during(fault):
            await asyncio.sleep(LOST_ANSWERS_S)
            fault.carried_out = False
            every_s = (60 * minutes - LOST_ANSWERS_S - 5) / (count - before)
            for number in range(before, count):
                await self.submit(number, 1.0)
                await asyncio.sleep(every_s)
            await asyncio.sleep(5)
            at_end, shown = await self.stored(), self.reports()
        ended = time.monotonic()
        first_s, all_s = await self.until_shown(ended, shown)
        delays = [each async for each in self.delays_s()]
        self.rows = {
            "submitted before, during": f"{before}, {self.submitted - before}",
            "stored during the outage": str(at_end - at_begin),
            "not stored at its end": str(self.submitted - at_end),
            "judge's end to stored, p50 and most": (
                f"{statistics.median(delays):.2f} s, {max(delays):.2f} s"
            ),
            "requests that failed": f"{fault.hits}, {fault.hits / minutes:.0f} a minute",
            "shown during the outage": str(shown),
            "first shown after": f"{first_s:.0f} s",
            "all shown after": f"{all_s:.0f} s",
            "shown in the end": f"{self.reports()} of {self.submitted}",
            "shown twice": str(len(list(self.doubled()))),
            "refused requests": str(len(self.server.refused)),
        }

    async def stored(self) -> int:
        """Submissions whose result is in the store."""
        found = [await self.store.results.evaluations(SubmissionId(n)) for n in self.seconds]
        return sum(map(bool, found))

    async def delays_s(self) -> AsyncIterator[float]:
        """Seconds from the end of each run to its result in the store."""
        for number, runs_s in self.seconds.items():
            (job,) = await self.store.jobs.of(SubmissionId(number))
            (found,) = await self.store.results.evaluations(SubmissionId(number))
            if job.started_at is not None:
                yield (found.at - job.started_at).total_seconds() - runs_s

    async def until_shown(self, since: float, shown: int) -> tuple[float, float]:
        """Seconds until the first report, and until every display was done."""
        first_s = SHOWN_S
        while time.monotonic() - since < SHOWN_S:
            if self.reports() > shown:
                first_s = min(first_s, time.monotonic() - since)
            if not self.unfinished():
                break
            await asyncio.sleep(0.5)
        return first_s, time.monotonic() - since

    def unfinished(self) -> int:
        """Submissions that are not shown to their end."""
        return self.submitted - self.reports()

    def reports(self) -> int:
        """Reports in private threads."""
        threads = [each for each in self.room.threads if each.private]
        said = {m.content.split(":")[0] for each in threads for m in each.messages}
        return sum(each.startswith("**submission #") for each in said)

    def doubled(self) -> Iterator[str]:
        """Threads of one name and kind, and messages of one text in one place."""
        counts = Counter((each.name, each.private) for each in self.room.threads)
        yield from (f"thread {name}" for (name, _), count in counts.items() if count > 1)
        for place in (self.room, *self.room.threads):
            said = Counter(each.content.split("\n")[0] for each in place.messages if each.content)
            yield from (f"{place.name}: {text}" for text, count in said.items() if count > 1)

    @property
    def failed(self) -> bool:
        """Whether a requirement was broken."""
        whole = self.reports() == self.submitted
        return not whole or any(self.doubled()) or bool(self.server.refused)


async def trial(kind: str, minutes: float, count: int, folder: Path) -> Trial:
    """A Discord, a bot and a crowd, from the first submission to the last message."""
    async with fresh_database() as dsn, LocalDiscord() as server:
        podium = Podium(folder, f"fake:CPU={count}", DATABASE_URL=dsn)
        published = podium("task", "publish", IDENTITY, "--unchecked")
        if published.returncode:
            sys.exit(published.stderr)
        guild = server.guild("gpu")
        room = guild.create_channel("submissions")
        people = [server.user(f"p{number}", guild) for number in range(count)]
        for person in people:
            person.goes_to(room)
        async with (
            server.spawn(UP, folder / "bot.log", environment=podium.environment) as bot,
            open_store(dsn, SystemClock()) as store,
        ):
            await server.wait_for(lambda: server.syncs, START_S)
            found = Trial(kind, server, store, room, people)
            await found.run(minutes, count)
            if found.failed:
                print(*found.doubled(), *(each.summary() for each in server.refused), sep="\n")
                print(bot.log[-4000:])
            return found


async def measure(kinds: list[str], minutes: float, count: int) -> bool:
    """Run all kinds at once; return whether every requirement was met."""
    with tempfile.TemporaryDirectory(prefix="podium-bench-") as name:
        folders = {kind: Path(name) / kind for kind in kinds}
        for folder in (Path(name), *folders.values()):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o711)
        found = await asyncio.gather(
            *(trial(kind, minutes, count, folders[kind]) for kind in kinds)
        )
    print(f"Discord fails for {minutes:g} minutes, load {os.getloadavg()[0]:.2f}")
    for name in ("", *found[0].rows):
        cells = [each.rows[name] if name else each.kind for each in found]
        print(f"{name:>36}" + "".join(f"{cell:>22}" for cell in cells))
    return not any(each.failed for each in found)


def main() -> None:
    """Measure on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--people", type=int, default=40)
    arguments = parser.parse_args()
    if not asyncio.run(measure(arguments.kind, arguments.minutes, arguments.people)):
        sys.exit(1)


if __name__ == "__main__":
    main()
