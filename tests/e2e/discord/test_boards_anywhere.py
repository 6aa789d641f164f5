"""As with the compose file: a bot without a runner, a worker and a database, each apart.

Boards are made from Discord, the page, the API and the command line, and each part is killed.
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
import pytest_asyncio

from tests.doubles.databases import fresh_database
from tests.doubles.discord.model.files import File
from tests.doubles.dispatching import until
from tests.e2e.command import Podium, fresh, terminate
from tests.e2e.discord.scene import Scene, scene
from tests.e2e.discord.test_releases import create, files, zipped

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.postgres,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

WITHIN_S = 90.0
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
STAMP = re.compile(r'name="stamp" value="([0-9a-f]{64})"')

LIVE = "gpus <> '{}' and lease_until > now()"


@dataclass(slots=True)
class Site:
    """The bot with Discord before it; the worker and the database are programs of their own."""

    stage: Scene
    worker: Podium
    dsn: str
    working: list["subprocess.Popen[str]"] = field(default_factory=list)

    def start_worker(self) -> None:
        self.working.append(self.worker.start("worker"))

    def kill_worker(self) -> None:
        process = self.working.pop()
        process.kill()
        process.communicate(timeout=WITHIN_S)

    async def rows(self, query: str, *values: object) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.dsn)
        try:
            return await connection.fetch(query, *values)
        finally:
            await connection.close()

    async def is_clean(self) -> bool:
        """Whether no run of a check is left."""
        return not await self.rows("select from jobs where check_run is not null")

    async def kill_database(self) -> None:
        """Kill the server's first process, with which all others end; wait for the next one."""
        folder = Path((await self.rows("show data_directory"))[0][0])
        number = (folder / "postmaster.pid").read_text(encoding="utf-8").split("\n")[0]
        os.kill(int(number), signal.SIGKILL)

        async def answers() -> bool:
            with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                return bool(await self.rows("select 1"))
            return False

        await until(answers, WITHIN_S)

    def client(self, token: str) -> httpx.AsyncClient:
        """A client of the bot's web server."""
        address = ADDRESS.findall(self.stage.bot.log)[-1]
        headers = {"Authorization": f"Bearer {token}", "Origin": address}
        return httpx.AsyncClient(base_url=address, headers=headers, timeout=60)

    def token(self) -> str:
        made = self.stage.podium("token", "create", "--person", "carol", "--admin")
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    async def published(self, asks: httpx.AsyncClient, number: int) -> dict[str, Any]:
        """A check once it has ended."""
        found: dict[str, Any] = {}

        async def over() -> bool:
            found.update((await asks.get(f"/api/v1/checks/{number}")).json())
            return found["state"] in {"published", "refused"}

        await until(over, WITHIN_S)
        return found


async def address_of(stage: Scene) -> str:
    """The address of the bot's web server, which it prints a while after it came to Discord."""
    found = await stage.server.wait_for(lambda: ADDRESS.findall(stage.bot.log), WITHIN_S)
    assert found
    return str(found[-1])


@asynccontextmanager
async def put_up() -> AsyncIterator[Site]:
    async with fresh_database() as dsn:
        apart = {"DATABASE_URL": dsn, "PODIUM_HTTP_PORT": "0"}
        async with scene("none", settings=apart) as stage:
            with fresh("fake:CPU=2") as worker:
                worker.environment["DATABASE_URL"] = dsn
                site = Site(stage, worker, dsn)
                site.start_worker()
                try:
                    await address_of(stage)
                    yield site
                finally:
                    for process in site.working:
                        terminate(process)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    async with put_up() as found:
        yield found


def task(name: str, seconds: float = 0.0) -> File:
    """A task's zip; it differs from others in its description."""
    text = files()["double/task.yml"].replace("Double every", f"{name}. Double every")
    return zipped(files({"task.yml": text}, seconds=seconds))


async def test_a_board_is_made_on_discord_whatever_is_killed(site: Site) -> None:
    stage = site.stage
    await create(stage, "anywhere", zip_file=task("anywhere", seconds=4))
    thread = await stage.carol.sees_thread(": anywhere", within=WITHIN_S)
    await stage.carol.sees(
        lambda message: "almost\\_two.py: test" in message.text, thread, within=WITHIN_S
    )
    site.kill_worker()
    await stage.bot.stop(signal.SIGKILL)
    await site.kill_database()
    site.start_worker()
    await stage.bot.start(within=WITHIN_S)
    await stage.carol.sees("anywhere on CPU is published", thread, within=WITHIN_S)
    await stage.bob.sees("New leaderboard: anywhere", stage.submissions, within=WITHIN_S)
    await until(site.is_clean, WITHIN_S)
    news = [each for each in stage.bob.messages() if "New leaderboard: anywhere" in each.text]
    assert len(news) == 1
    actions = await site.rows("select subject from audit where action = 'publish-created'")
    assert [row["subject"] for row in actions].count("board anywhere version 1") == 1


async def test_a_check_is_cancelled_by_a_click_although_its_run_goes_on(site: Site) -> None:
    stage = site.stage
    await create(stage, "cancelled", zip_file=task("cancelled", seconds=60))
    thread = await stage.carol.sees_thread(": cancelled", within=WITHIN_S)
    running = await stage.carol.sees(
        lambda message: "almost\\_two.py: test" in message.text, thread, within=WITHIN_S
    )
    answer = await stage.carol.click(running, "Cancel")
    assert "Stopping check" in (await answer.final()).text
    await stage.carol.sees("was cancelled by its submitter", thread, within=WITHIN_S)
    await until(site.is_clean, WITHIN_S)
    assert await site.rows("select from releases where ended_at is null") == []
    assert not (await stage.carol.sees("Checking the task of cancelled", thread)).buttons


async def test_a_board_is_made_by_the_api_and_the_page(site: Site) -> None:
    async with site.client(site.token()) as asks:
        file = task("by-api")
        asked = await asks.post(
            "/api/v1/leaderboards",
            data={"name": "by-api", "gpus": "CPU"},
            files={"task_zip": (file.filename, file.data)},
        )
        assert asked.status_code == 202, asked.text
        check = await site.published(asks, asked.json()["id"])
        assert check["state"] == "published", check
        assert {each["ok"] for each in check["runs"]} == {True}

    token = site.token()
    async with site.client(token) as browser:
        del browser.headers["Authorization"]
        signed_in = await browser.post("/sign-in", data={"token": token, "next": "/"})
        assert signed_in.status_code == 303, signed_in.text
        stamp = STAMP.findall((await browser.get("/me")).text)[0]
        file = task("by-page")
        made = await browser.post(
            "/create",
            data={"stamp": stamp, "name": "by-page", "gpu": "CPU", "visibility": "public"},
            files={"task_zip": (file.filename, file.data)},
        )
        assert made.status_code == 303, made.text
        number = int(made.headers["Location"].rpartition("/")[2])
        async with site.client(site.token()) as asks:
            assert (await site.published(asks, number))["state"] == "published"
        assert "by-page on CPU is published." in (await browser.get(made.headers["Location"])).text


async def test_a_board_is_made_by_the_command_line_beside_the_bot(site: Site) -> None:
    podium, file = site.stage.podium, task("by-command")
    path = podium.folder / file.filename
    path.write_bytes(file.data)
    refused = podium("task", "check", path)
    assert refused.returncode == 2, refused.stdout
    made = podium("task", "publish", path, "--name", "by-command", "--gpu", "CPU")
    assert made.returncode == 0, made.stderr
    assert "by-command on CPU: created" in made.stdout
    shown = json.loads(podium("show", "by-command", "--json").stdout)
    assert shown
    assert await site.rows("select from releases where door like 'command-line%'") == []
    assert await site.is_clean()


async def test_without_a_worker_it_is_said_what_to_do(site: Site) -> None:
    site.kill_worker()
    try:
        podium, file = site.stage.podium, task("by-nobody")
        path = podium.folder / file.filename
        path.write_bytes(file.data)

        async def nobody() -> bool:
            return not await site.rows(f"select from workers where {LIVE}")

        await until(nobody, WITHIN_S)
        refused = podium("task", "publish", path, "--name", "by-nobody", "--gpu", "CPU")
        assert refused.returncode == 2, refused.stdout
        assert "start a worker with `podium worker`" in refused.stderr
    finally:
        site.start_worker()
