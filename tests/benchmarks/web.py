"""Prints how fast the web server answers for a large board while results arrive.

python -m tests.benchmarks.web [--submissions 50000] [--people 2000] [--readers 50] [--pause 0.5]
    [--results 2] [--seconds 10] [--watchers 1000]
"""

import argparse
import asyncio
import gzip
import itertools
import json
import os
import random
import re
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import psutil

from bot.app.context import SystemClock
from bot.services.tokens import create_token
from bot.store.migrate import migrations_folder
from bot.store.postgres import open_store
from runners.contract.verdict import Verdict
from tests.doubles.databases import fresh_database
from tests.doubles.stored import Scene, make_evaluation, set_up
from tests.e2e.command import Podium

SEED = """
alter table jobs disable trigger user;
alter table evaluations disable trigger user;
alter table scores disable trigger user;
insert into people (identity, name, created_at)
select 'bench:' || n, 'Person ' || n, now() from generate_series(1, {people}) as n;
insert into submissions (
    person, board, task_version, file_name, source, mode, gpus, created_at)
select people.id, boards.id, boards.task_version, 'kernel.py', (select sha256 from sources limit 1),
    'ranked', array['CPU'], now() - make_interval(secs => {submissions} - n)
from boards, generate_series(1, {submissions}) as n
join people on identity = 'bench:' || (1 + n % {people}) order by n;
insert into jobs (
    submission, person, gpu, mode, priority, turn, state, attempt, max_attempts, fence, run_at,
    created_at, moved_at, started_at, finished_at)
select id, person, 'CPU', 'ranked', 10, 1, 'succeeded', 1, 3, 1, created_at, created_at, created_at,
    created_at, created_at
from submissions where not exists (select from jobs where submission = submissions.id);
insert into evaluations (
    job, submission, task_version, gpu, verdict, stage, message, wall_s, evaluation, at, used_s)
select jobs.id, submission, task_version, 'CPU', verdict,
    case verdict when 'passed' then null else 'timing' end, 'm', 1.5,
    case verdict when 'passed' then '{passed}' else '{failed}' end, finished_at, 1.5
from jobs join submissions on submissions.id = submission, lateral (
    select case when submission % 5 = 0 or submissions.person % 20 = 0
        then 'wrong_answer' else 'passed' end as verdict) as judged
where state = 'succeeded';
insert into scores (job, submission, task_version, gpu, time_ns, half_width_ns)
select job, submission, task_version, gpu,
    1e6 * (1 + abs(hashint8(submission)) / 2147483647.0), 1000
from evaluations where verdict = 'passed';
alter table jobs enable trigger user;
alter table evaluations enable trigger user;
alter table scores enable trigger user;
{fill}
"""
"""Rows in bulk; what triggers would have stored is computed as in the migration."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One kind of request, all of its latencies in seconds, and the bytes of one answer."""

    name: str
    seconds: Sequence[float]
    size: int
    statuses: frozenset[int]
    spent_s: float

    def line(self) -> str:
        """A row of the table."""
        p50, p95, p99 = (1e3 * quantile(self.seconds, each) for each in (0.5, 0.95, 0.99))
        rate = len(self.seconds) / self.spent_s
        statuses = ",".join(map(str, sorted(self.statuses)))
        return (
            f"{self.name:>34} {rate:8.0f} {p50:8.1f} {p95:8.1f} {p99:8.1f} {self.size:10,} "
            f"{statuses:>8}"
        )


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which this fraction of them is."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


class Line:
    """One persistent connection of a client that costs almost nothing compared with the server.

    Each has its own address, because the server limits the connections per address.
    """

    _numbers = itertools.count()

    def __init__(self, url: str) -> None:
        there = urlsplit(url)
        self._place = there.hostname or "", there.port or 80
        number = next(self._numbers)
        self._here = f"127.1.{number // 250 % 250}.{1 + number % 250}", 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def get(self, path: str, headers: str = "") -> tuple[int, bytes, bytes]:
        """Status, head and body of one answer."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(
                *self._place, limit=16 << 20, local_addr=self._here
            )
        reader, writer = self._streams
        writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\n{headers}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        if b"connection: close" in head.lower():
            self.close()
        return int(head.split(b" ", 2)[1]), head, body

    async def stream(self, path: str) -> asyncio.StreamReader:
        """Read a streamed answer."""
        reader, writer = await asyncio.open_connection(*self._place, local_addr=self._here)
        self._streams = reader, writer
        writer.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise ConnectionError(head.decode())
        return reader

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


@dataclass(frozen=True, slots=True)
class Bench:
    """A seeded board behind a `podium up`."""

    url: str
    scene: Scene
    arguments: argparse.Namespace

    async def read(
        self, name: str, path: str, headers: str = "", pause: float = 0, own: Sequence[str] = ()
    ) -> Reading:
        """Run this many readers at once; each pauses for `pause` seconds on average.

        `own` are further headers, each of one reader.
        """
        ends = time.perf_counter() + self.arguments.seconds
        seconds: list[float] = []
        seen: list[tuple[int, int]] = []

        async def reader(number: int) -> None:
            line, sent = Line(self.url), headers + (own[number % len(own)] if own else "")
            await asyncio.sleep(random.random() * pause)  # noqa: S311 - no secret
            while time.perf_counter() < ends:
                began = time.perf_counter()
                status, _, body = await line.get(path, sent)
                seconds.append(time.perf_counter() - began)
                seen.append((status, len(body)))
                await asyncio.sleep(2 * pause * random.random())  # noqa: S311 - the same
            line.close()

        await asyncio.gather(*map(reader, range(self.arguments.readers)))
        sizes = max(size for _, size in seen)
        statuses = frozenset(status for status, _ in seen)
        return Reading(name, seconds, sizes, statuses, self.arguments.seconds)

    async def signed_in(self) -> list[str]:
        """The header of each reader's token; all of them are ranked, and see their own line."""
        headers = []
        for number in range(1, self.arguments.readers + 1):
            person = await self.scene.store.people.ensure(f"bench:{number}", f"Person {number}")
            made = await create_token(self.scene.store, person.id, "bench")
            headers.append(f"Authorization: Bearer {made.secret}\r\n")
        return headers

    async def first(self, path: str) -> float:
        """Milliseconds until an answer that is not cached."""
        line = Line(self.url)
        began = time.perf_counter()
        await line.get(path)
        line.close()
        return 1e3 * (time.perf_counter() - began)

    async def submit(self, directive: str) -> None:
        """Store one more ranked submission."""
        number = random.randint(1, self.arguments.people)  # noqa: S311 - the same
        person = await self.scene.store.people.ensure(f"bench:{number}", f"Person {number}")
        await self.scene.submit(person, source=f"# fake: {directive}\n# {random.random()}")  # noqa: S311

    @asynccontextmanager
    async def results(self) -> AsyncIterator[None]:
        """Submit and judge this many submissions per second in the block."""

        async def submitting() -> None:
            while True:
                await self.submit(f"time_us={random.randint(900, 2100)} seconds=0.2")  # noqa: S311
                await asyncio.sleep(1 / self.arguments.results)

        task = asyncio.create_task(submitting()) if self.arguments.results else None
        try:
            yield
        finally:
            if task is not None:
                task.cancel()

    async def weigh(self, path: str) -> int:
        """The bytes that are sent for a page and everything that it includes."""
        line = Line(self.url)
        headers = "Accept-Encoding: gzip\r\n"
        _, _, body = await line.get(path, headers)
        page = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        named = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', page.decode()))
        return len(body) + sum([len((await line.get(each, headers))[2]) for each in sorted(named)])

    async def watch(self) -> None:
        """How soon all watchers of the queue are notified of a change."""
        lines = [Line(self.url) for _ in range(self.arguments.watchers)]
        streams = [await line.stream("/queue/events") for line in lines]
        arrived: list[float] = []

        async def watcher(stream: asyncio.StreamReader) -> None:
            while True:
                if (await stream.readline()).startswith(b"event: part"):
                    arrived.append(time.perf_counter())

        watching = [asyncio.create_task(watcher(each)) for each in streams]
        await asyncio.sleep(5)
        delivered, latencies = [], []
        for _ in range(3):
            arrived.clear()
            began = time.perf_counter()
            await self.submit("time_us=2000 seconds=8")
            await asyncio.sleep(5)
            first = arrived[: len(lines)]
            delivered.append(len(first))
            latencies += [each - began for each in first]
            await asyncio.sleep(8)
        for task in watching:
            task.cancel()
        for line in lines:
            line.close()
        p50, p95 = (quantile(latencies, each) for each in (0.5, 0.95))
        print(
            f"{len(lines)} watchers of the queue: told of 3 changes {delivered} times, "
            f"p50 {p50:.2f} s, p95 {p95:.2f} s, last {max(latencies):.2f} s"
        )


async def seed(dsn: str, arguments: argparse.Namespace) -> None:
    """The board and everything that was ever submitted to it."""
    text = (migrations_folder() / "0020_operations.sql").read_text("utf-8")
    fill = text[text.index("insert into entrants\nselect") :]
    text = (migrations_folder() / "0023_records.sql").read_text("utf-8")
    fill += text[text.index("\ninsert into records\nselect") :]
    passed, failed = [
        make_evaluation(verdict).model_dump_json(exclude={"files"}).replace("'", "''")
        for verdict in (Verdict.PASSED, Verdict.WRONG_ANSWER)
    ]
    values = {"people": arguments.people, "submissions": arguments.submissions, "fill": fill}
    connection = await asyncpg.connect(dsn)
    try:
        statement = SEED.format(passed=passed, failed=failed, **values)
        await connection.execute(statement, timeout=600)
        await connection.execute("vacuum analyze", timeout=600)
        await connection.execute("checkpoint", timeout=600)
    finally:
        await connection.close()


@asynccontextmanager
async def served(dsn: str, folder: Path) -> AsyncIterator[tuple[str, int]]:
    """The address of a `podium up` on this database, and its process."""
    podium = Podium(
        folder,
        "fake:CPU=4",
        DATABASE_URL=dsn,
        PODIUM_HTTP_PORT="0",
        PODIUM_HTTP_REQUESTS_PER_MINUTE="0",
    )
    process = podium.start("up", "--json")
    try:
        line = await asyncio.to_thread(process.stdout.readline)  # type: ignore[union-attr]
        [url] = re.findall(r"http://[0-9.:]+", " ".join(json.loads(line)["doors"]))
        yield url, process.pid
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)


async def measure(arguments: argparse.Namespace) -> None:
    """Everything, row by row."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
    async with fresh_database() as dsn, open_store(dsn, SystemClock()) as store:
        scene = await set_up(store)
        await scene.submit()  # the source that the bulk rows name
        await seed(dsn, arguments)
        with tempfile.TemporaryDirectory(prefix="podium-web-") as name:
            async with served(dsn, Path(name)) as (url, pid):
                await report(Bench(url, scene, arguments), pid)


async def others_at_work(own: set[int]) -> int:
    """How many other processes use more than a tenth of a core."""
    others = [each for each in psutil.process_iter() if each.pid not in own]
    busy = 0
    for last in (False, True):
        for each in others:
            with suppress(psutil.Error):
                busy += each.cpu_percent() > 10 and last
        await asyncio.sleep(1)
    return busy


async def report(bench: Bench, pid: int) -> None:
    """The table."""
    busy, arguments = await others_at_work({pid, os.getpid()}), bench.arguments
    print(
        f"{arguments.submissions:,} submissions of {arguments.people:,} people, "
        f"{arguments.readers} readers, {arguments.results} results/s, "
        f"load {os.getloadavg()[0]:.1f}, {busy} other busy processes"
    )
    print(
        f"{'':>34} {'/s':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8} {'bytes':>10} {'status':>8}"
    )
    api, page = "/api/v1/leaderboards/vectoradd/standings", "/boards/vectoradd"
    _, head, _ = await Line(bench.url).get(api)
    tag = re.search(rb"(?i)etag: (\S+)", head)
    known = f"If-None-Match: {tag[1].decode()}\r\n" if tag else ""
    pause = arguments.pause
    others = ("season plot", f"{page}/season.json"), ("a person", "/people/3")
    for name, path in (("the page", page), *others):
        print(f"{name} that nobody has asked for yet: {await bench.first(path):.0f} ms")
    async with bench.results():
        for name, path, headers, wait in (
            ("healthz, no pause", "/healthz", "", 0),
            (f"standings, pause {pause} s", api, "", pause),
            (f"page, pause {pause} s", page, "", pause),
            ("standings, ETag known, no pause", api, known, 0),
            ("standings, no pause", api, "", 0),
            ("page, no pause", page, "", 0),
            (f"season plot, pause {pause} s", f"{page}/season.json", "", pause),
            (f"person, pause {pause} s", "/people/3", "", pause),
        ):
            print((await bench.read(name, path, headers, wait)).line(), flush=True)
        name, own = f"page, {arguments.readers} signed in, pause {pause} s", await bench.signed_in()
        zipped = "Accept-Encoding: gzip\r\n"
        print((await bench.read(name, page, zipped, pause, own)).line(), flush=True)
    for path in ("/", page, "/queue"):
        print(f"page weight of {path}: {await bench.weigh(path):,} bytes")
    if arguments.watchers:
        await bench.watch()
    print(f"memory of the process: {psutil.Process(pid).memory_info().rss >> 20} MiB")


def main() -> None:
    """Measure on a fresh embedded server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=50_000)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--pause", type=float, default=0.5)
    parser.add_argument("--results", type=float, default=2.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--watchers", type=int, default=1000)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
