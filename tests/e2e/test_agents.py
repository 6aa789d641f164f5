"""Machines that judge from elsewhere, as real processes: killed, cut off, turned away, stopped."""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import asyncpg
import psutil
import pytest

from bot.app.context import SystemClock
from bot.domain.board import Viewer
from bot.domain.publication import PublishRequest
from bot.domain.submission import SubmissionRequest
from bot.ports import Store
from bot.services.publishing.publish import publish
from bot.services.submissions import submit
from bot.services.worker_tokens import create_worker_token
from bot.store.postgres import open_store
from runners.contract.evaluation import CPU
from runners.contract.task import Mode
from tests.architecture.tree import ROOT
from tests.doubles.evaluating import make_identity
from tests.doubles.network import network_to
from tests.e2e.command import Podium

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(180)]

CLOCK = SystemClock()
TLS = ROOT / "tests" / "doubles" / "tls"
LEASE_S = "2"
UNTIMED = "insert into reference_times (task_version, gpu) select id, 'CPU' from task_versions"
"""So that the house has no job of its own."""
STUCK = "# fake: seconds=0.1\nimport time\ntime.sleep(100)\ndef custom_kernel(data): ...\n"
"""Never done by a harness, and soon by the fake runner."""
QUICK = "def custom_kernel(data): ...\n"
SUCCEEDED = "select count(*) from jobs where state = 'succeeded'"
RUNNING_AS = """
select count(*) from jobs where state = 'running' and call is not null and worker like $1
"""


class Site:
    """A served Podium without runners, and what its database says."""

    def __init__(self, podium: Podium, dsn: str, store: Store) -> None:
        self.podium = podium
        self.dsn = dsn
        self.store = store
        self.server: subprocess.Popen[str] | None = None
        self.url = ""
        self._started: list[subprocess.Popen[str]] = []

    async def up(self, port: int = 0) -> None:
        self.podium.environment["PODIUM_HTTP_PORT"] = str(port)
        self.server = await asyncio.to_thread(self.podium.start, "up")
        self._started.append(self.server)
        said = await asyncio.to_thread(said_until, self.server, "Ctrl-C")
        self.url = re.findall(r"https?://\S+", said)[0]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    async def token(self, name: str) -> str:
        admin = await self.store.people.ensure("local:admin", "Admin")
        day = timedelta(days=1)
        return (await create_worker_token(self.store, CLOCK, admin.id, name, lifetime=day)).secret

    async def ran(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self.podium, *arguments)

    async def agent(
        self, name: str, token: str, url: str = "", runner: str = "fake"
    ) -> subprocess.Popen[str]:
        """A machine of its own: it knows the server and its token, and nothing else of Podium."""
        process = await asyncio.to_thread(
            subprocess.Popen,
            [sys.executable, "-m", "bot", "worker", "--data", name],
            cwd=self.podium.folder,
            env={
                "PATH": self.podium.environment["PATH"],
                "PYTHONPATH": str(ROOT),
                "HOME": str(self.podium.folder),
                "PODIUM_RUNNERS": runner,
                "PODIUM_SERVER": url or self.url,
                "PODIUM_WORKER_TOKEN": token,
                "SSL_CERT_FILE": str(TLS / "certificate.pem"),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        said = await asyncio.to_thread(said_until, process, "Ctrl-C")
        assert f"working as {name}:" in said, said
        return process

    async def queue(self, name: str, source: str) -> None:
        person = await self.store.people.ensure(f"local:{name}", name)
        request = SubmissionRequest(
            Viewer(person.id), "kernel.py", source.encode(), Mode.TEST, "identity", gpus=(CPU,)
        )
        await submit(self.store, CLOCK, request)

    async def count(self, query: str, *values: object) -> int:
        return int((await self.rows(query, *values))[0][0])

    async def rows(self, query: str, *values: object) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return list(await connection.fetch(query, *values))
        finally:
            await connection.close()

    async def until(self, enough: Callable[[], Awaitable[bool]], within_s: float = 40) -> None:
        async with asyncio.timeout(within_s):
            while not await enough():  # noqa: ASYNC110 - a database has no event of its own
                await asyncio.sleep(0.05)

    async def until_runs(self, name: str) -> None:
        async def runs() -> bool:
            return await self.count(RUNNING_AS, f"{name}:%") > 0

        await self.until(runs)

    async def until_succeeded(self, jobs: int) -> None:
        async def done() -> bool:
            return await self.count(SUCCEEDED) >= jobs

        await self.until(done)

    async def until_logged(self, name: str, action: str) -> None:
        async def logged() -> bool:
            return f'"{action}"' in self.log_of(name)

        await self.until(logged)

    def log_of(self, name: str) -> str:
        return (self.podium.folder / name / "podium.log").read_text(encoding="utf-8")

    def end(self) -> None:
        for process in reversed(self._started):
            with suppress(ProcessLookupError):
                process.kill()
            process.communicate()


def said_until(process: "subprocess.Popen[str]", word: str) -> str:
    """What a process says up to the line with this word, or to its end."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if word in line:
            break
    return said


async def ended(process: "subprocess.Popen[str]", how: signal.Signals | None) -> tuple[int, str]:
    if how is not None:
        process.send_signal(how)
    said, _ = await asyncio.to_thread(process.communicate, timeout=60)
    return process.returncode, said


@asynccontextmanager
async def site_at(folder: Path, dsn: str, **environment: str) -> AsyncIterator[Site]:
    podium = Podium(
        folder, "none", **({"DATABASE_URL": dsn, "PODIUM_LEASE_S": LEASE_S} | environment)
    )
    async with open_store(dsn, CLOCK) as store:
        admin = await store.people.ensure("local:admin", "Admin")
        await publish(store, CLOCK, PublishRequest(admin.id, gpus=(CPU,)), make_identity(60))
        site = Site(podium, dsn, store)
        await site.rows(UNTIMED)
        try:
            await site.up()
            yield site
        finally:
            site.end()


async def test_jobs_of_an_agent_that_is_killed_or_cut_off_are_done_by_another_once(
    tmp_path: Path, postgres_dsn: str
) -> None:
    async with site_at(tmp_path, postgres_dsn) as site, network_to(site.port) as (network, port):
        killed = await site.agent("killed", await site.token("killed"), runner="local")
        await site.queue("ada", STUCK)
        await site.until_runs("killed")
        way = f"http://127.0.0.1:{port}"
        cut = await site.agent("cut", await site.token("cut"), way)
        await site.queue("bob", "# fake: seconds=1.5\ndef custom_kernel(data): ...\n")
        await site.until_runs("cut")

        await killed_with_all_beneath(killed)
        network.cut()
        other = await site.agent("other", await site.token("other"))
        for number in range(4):
            await site.queue(f"person{number}", QUICK)
        await site.until_succeeded(6)
        jobs = await site.rows("select worker, fence from jobs order by id")
        assert {row["worker"].partition(":")[0] for row in jobs} == {"other"}
        assert [row["fence"] for row in jobs] == [2, 2, 1, 1, 1, 1]
        evaluations = await site.rows("select * from evaluations order by job")
        assert len(evaluations) == 6

        network.mend()
        await site.until_logged("cut", "result-dropped")
        assert await site.rows("select * from evaluations order by job") == evaluations
        status, said = await ended(other, signal.SIGTERM)
        assert (status, said.splitlines()[-1]) == (0, "stopped"), said
        await site.queue("late", QUICK)
        await site.until_succeeded(7)
        told = await site.ran("runners")
        assert "cut:" in told.stdout
        assert "other:" not in told.stdout
        assert (await ended(cut, signal.SIGTERM))[0] == 0


async def killed_with_all_beneath(agent: "subprocess.Popen[str]") -> None:
    beneath = psutil.Process(agent.pid).children(recursive=True)
    assert any("runners.harness" in " ".join(each.cmdline()) for each in beneath)
    await ended(agent, signal.SIGKILL)
    assert psutil.wait_procs(beneath, timeout=10)[1] == []


async def test_a_server_that_is_killed_and_comes_back_over_https_loses_nothing(
    tmp_path: Path, postgres_dsn: str
) -> None:
    tls = {
        "PODIUM_HTTP_CERTIFICATE": str(TLS / "certificate.pem"),
        "PODIUM_HTTP_KEY": str(TLS / "key.pem"),
        "PODIUM_LEASE_S": "20",
    }
    async with site_at(tmp_path, postgres_dsn, **tls) as site:
        assert site.url.startswith("https://")
        token = await site.token("box")
        agent = await site.agent("box", token, f"https://localhost:{site.port}")
        await site.queue("ada", "# fake: seconds=2\ndef custom_kernel(data): ...\n")
        await site.until_runs("box")
        assert site.server is not None
        await ended(site.server, signal.SIGKILL)
        await asyncio.sleep(2.5)  # the evaluation ends meanwhile, and nobody is there to take it
        assert await site.count(SUCCEEDED) == 0
        await site.up(site.port)
        await site.until_succeeded(1)
        (row,) = await site.rows("select attempt, fence, worker from jobs")
        assert (row["attempt"], row["fence"]) == (1, 1)

        async with asyncio.timeout(30):
            while '"agent-log"' not in site.log_of("data"):  # noqa: ASYNC110 - it is a file
                await asyncio.sleep(0.1)

        assert (await site.ran("token", "revoke", "box")).returncode == 0
        status, said = await ended(agent, None)
        assert status == 2, said
        assert "refuses the token" in said
        assert "Traceback" not in said
        assert token not in site.log_of("box") + site.log_of("data")
