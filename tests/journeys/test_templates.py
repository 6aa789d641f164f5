"""Walked by somebody new, who takes a board's template and hands it in as it is.

Ada made the boards before: of one task by `podium task new`, of one problem of KernelBench, and of
all tasks of this repository. Those she opens unchecked: six want a GPU, which she has not, so what
is handed in there waits for one, and all solutions of the other eight take minutes.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx
import pytest
from playwright.async_api import Page, async_playwright

from tests.architecture.tree import ROOT
from tests.doubles import launcher
from tests.doubles.discord.limits import Rates
from tests.doubles.discord.model.files import File
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.process import podium_command
from tests.doubles.discord.server import LocalDiscord
from tests.doubles.discord.users.person import Person
from tests.e2e.command import Podium, fresh

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(900)]

TASKS = ROOT / "tasks"
PROBLEM = re.compile(
    r"^```python\n(?P<text># (?P<path>level\d/\S+)\n.*?)^```$", re.MULTILINE | re.DOTALL
)
"""A problem of KernelBench in the author's guide."""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
_SUBMISSION = re.compile(r"/submit/(\d+)")
CHROMIUM = Path("/usr/bin/chromium")
HAS_BROWSER = CHROMIUM.exists()
QUICK = 0.05
"""The scale of Discord's rate windows."""
ODD = "Twice.2"
"""A board that is judged here: each door hands in its template, and the program all of them."""
PUBLISH_S = 600
JUDGE_S = 300
START_S = 60


class Stranger(Protocol):
    """Somebody with one way to Podium."""

    async def take(self, board: str) -> tuple[str, bytes]:
        """Fetch the template; gives the file's name and what is in it."""
        ...

    async def hand_in(self, name: str, content: bytes, gpu: str | None) -> int:
        """Have the file tested, on this GPU type where the board has several; gives the number."""
        ...

    async def look(self, number: int) -> str:
        """What is told of a submission."""
        ...


@dataclass(repr=False)
class Site:
    """A Podium that is up, its boards with their GPU types, and who is there."""

    podium: Podium
    url: str
    boards: dict[str, list[str]]
    alice: Person

    @property
    def python(self) -> set[str]:
        """The boards that are judged here; the others want CUDA C++ and a GPU."""
        return {board for board, gpus in self.boards.items() if gpus == ["CPU"]}


@dataclass
class ByCommand:
    """At a terminal of another machine, with a token."""

    laptop: Podium
    python: set[str]

    async def take(self, board: str) -> tuple[str, bytes]:
        name = f"my_{board}.{'py' if board in self.python else 'cu'}"
        said = await self._said("template", board, name)
        assert said.startswith(f"wrote {name}; next: ")
        assert said.endswith(f" submit {name}\n")
        return name, (self.laptop.folder / name).read_bytes()

    async def hand_in(self, name: str, content: bytes, gpu: str | None) -> int:
        chosen = () if gpu is None else ("--gpu", gpu)
        said = await self._said("submit", name, "--mode", "test", "--no-wait", "--json", *chosen)
        number: int = json.loads(said)["submission"]
        return number

    async def look(self, number: int) -> str:
        return await self._said("show", str(number))

    async def _said(self, *arguments: str) -> str:
        answer = await asyncio.to_thread(self.laptop, *arguments)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout


@dataclass
class ByProgram:
    """A program that talks to `/api/v1`."""

    client: httpx.AsyncClient

    async def take(self, board: str) -> tuple[str, bytes]:
        answer = await self.client.get(f"leaderboards/{board}/template")
        assert answer.status_code == 200, answer.text
        (name,) = re.findall('filename="(.+)"', answer.headers["Content-Disposition"])
        return name, answer.content

    async def hand_in(self, name: str, content: bytes, gpu: str | None) -> int:
        form = {"mode": "test"} | ({} if gpu is None else {"gpus": gpu})
        answer = await self.client.post("submissions", data=form, files={"file": (name, content)})
        assert answer.is_success, answer.text
        number: int = answer.json()["id"]
        return number

    async def look(self, number: int) -> str:
        return (await self.client.get(f"submissions/{number}")).text

    async def final(self, number: int) -> str:
        """The state in which it ended, as soon as it has."""
        async with asyncio.timeout(JUDGE_S):
            while True:
                state: str = (await self.client.get(f"submissions/{number}")).json()["state"]
                if state not in {"queued", "running"}:
                    return state
                await asyncio.sleep(0.2)


@dataclass
class ByBrowser:
    """In a browser, on the pages."""

    page: Page
    folder: Path

    async def take(self, board: str) -> tuple[str, bytes]:
        await self.page.goto(f"/boards/{board}/task")
        async with self.page.expect_download() as begun:
            await self.page.get_by_role("link", name="Template in").click()
        download = await begun.value
        file = self.folder / download.suggested_filename
        await download.save_as(file)
        return file.name, file.read_bytes()

    async def hand_in(self, name: str, content: bytes, gpu: str | None) -> int:
        await self.page.goto("/submit")
        await self.page.locator("input[type=file]").set_input_files(self.folder / name)
        await self.page.get_by_text("From the file's header").wait_for()
        if gpu is not None:
            await self.page.get_by_label(gpu).check()
        await self.page.get_by_role("radio", name="Test only the tests, without timing").check()
        await self.page.get_by_role("button", name="Submit").click()
        await self.page.wait_for_url(_SUBMISSION)
        (number,) = _SUBMISSION.findall(self.page.url)
        return int(number)

    async def look(self, number: int) -> str:
        await self.page.goto(f"/submissions/{number}")
        return await self.page.locator("main").inner_text()


@dataclass
class ByDiscord:
    """In a channel of a Discord server."""

    person: Person

    async def take(self, board: str) -> tuple[str, bytes]:
        asked = await self.person.slash("leaderboard template", leaderboard_name=board)
        (file,) = (await asked.final()).files
        return file.filename, file.data

    async def hand_in(self, name: str, content: bytes, gpu: str | None) -> int:
        run = await self.person.slash("leaderboard submit test", script=File(name, content))
        answer = await run.final()
        if gpu is not None:
            await self.person.select(answer, [gpu])
            await self.person.click(answer, "Submit")
            await self.person.world.wait_for(lambda: "is stored" in answer.text, 30)
        stored = re.search(r"Submission #(\d+) is stored", answer.text)
        assert stored is not None, answer.text
        return int(stored[1])

    async def look(self, number: int) -> str:
        shown = await self.person.slash("submission show", id=number)
        return (await shown.final()).text


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    with fresh("local") as podium:
        boards = published(podium)
        async with LocalDiscord(rates=Rates(QUICK)) as server:
            guild = server.guild("gpu", Permission.ADMINISTRATOR)
            alice = server.user("alice", guild)
            alice.goes_to(guild.create_channel("submissions"))
            environment = podium.environment | {"PODIUM_HTTP_PORT": "0"}
            log = podium.folder / "up.log"
            async with server.spawn(podium_command("up"), log, environment=environment):
                await server.wait_for(lambda: server.syncs, START_S)
                told = await server.wait_for(lambda: _ADDRESS.search(log.read_text()), START_S)
                assert told is not None
                yield Site(podium, told[0], boards, alice)
            server.assert_clean()


def published(podium: Podium) -> dict[str, list[str]]:
    """What Ada does before; gives the boards with their GPU types."""
    done(podium, "task", "publish", *sorted(TASKS.glob("*.yaml")), "--unchecked")
    done(podium, "task", "new", "doubling")
    done(podium, "task", "publish", "tasks/doubling", "--name", ODD)
    found = PROBLEM.search((TASKS / "README.md").read_text(encoding="utf-8"))
    assert found is not None
    problem = podium.folder / "checkout" / found["path"]
    problem.parent.mkdir(parents=True)
    problem.write_text(found["text"], encoding="utf-8")
    done(podium, "task", "import", "kernelbench", "checkout")
    done(podium, "task", "publish", "tasks/kernelbench")
    listed = json.loads(done(podium, "show", "--json"))
    return {each["board"]: each["gpus"] for each in listed}


def done(podium: Podium, *arguments: str | Path) -> str:
    """What a command says that has the time to run every solution of some tasks."""
    asked = [str(each) for each in arguments]
    answer = launcher.run(asked, podium.environment, podium.folder, PUBLISH_S)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


async def token(site: Site, person: str) -> str:
    made = await asyncio.to_thread(site.podium, "token", "create", "--person", person)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@asynccontextmanager
async def terminal(site: Site) -> AsyncIterator[ByCommand]:
    home = site.podium.folder / "laptop"
    home.mkdir()
    environment = {"PODIUM_CLI_SERVER": site.url, "PODIUM_CLI_TOKEN": await token(site, "grace")}
    laptop = Podium(home, **environment)
    for name in ("PODIUM_DATA_DIR", "PODIUM_RUNNERS", "PODIUM_LEASE_S"):
        del laptop.environment[name]
    yield ByCommand(laptop, site.python)


@asynccontextmanager
async def program(site: Site) -> AsyncIterator[ByProgram]:
    headers = {"Authorization": f"Bearer {await token(site, 'ken')}"}
    async with httpx.AsyncClient(
        base_url=f"{site.url}/api/v1/", headers=headers, timeout=START_S
    ) as client:
        yield ByProgram(client)


@asynccontextmanager
async def browser(site: Site) -> AsyncIterator[ByBrowser]:
    async with async_playwright() as played:
        opened = await played.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-background-networking"]
        )
        page = await opened.new_page(base_url=site.url)
        page.set_default_timeout(START_S * 1000)
        await page.goto("/submit")
        await page.get_by_label("Personal token").fill(await token(site, "radia"))
        await page.get_by_role("button", name="Sign in by token").click()
        await page.wait_for_url("**/submit")
        try:
            yield ByBrowser(page, site.podium.folder)
        finally:
            await opened.close()


async def test_a_template_that_is_handed_in_unchanged_is_judged(site: Site) -> None:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(program(site))
        doors: dict[str, Stranger] = {
            "CLI": await stack.enter_async_context(terminal(site)),
            "API": api,
            "Discord": ByDiscord(site.alice),
        }
        if HAS_BROWSER:
            doors["page"] = await stack.enter_async_context(browser(site))
        tried = site.boards.keys() - site.python | {ODD}
        async with asyncio.TaskGroup() as group:
            walks = {
                name: group.create_task(
                    walk(stranger, site.boards, None if stranger is api else tried)
                )
                for name, stranger in doors.items()
            }
        templates, _ = walks["API"].result()
        assert len(templates) == 16
        for door, task in walks.items():
            taken, numbers = task.result()
            assert taken == templates, door
            for board, number in numbers.items():
                if board in site.python:
                    assert await api.final(number) == "finished"
                told = await doors[door].look(number)
                assert ("passed" if board in site.python else "queued") in told, (door, board, told)


async def walk(
    stranger: Stranger, boards: dict[str, list[str]], tried: set[str] | None
) -> tuple[dict[str, bytes], dict[str, int]]:
    """Take each board's template, look at it and hand it in as it is, at these boards or at all.

    Gives the templates and the numbers.
    """
    templates, numbers = {}, {}
    for board, gpus in boards.items():
        name, content = await stranger.take(board)
        mark = "#" if name.endswith(".py") else "//"
        headings = [line for line in content.decode().splitlines() if "!P" in line]
        assert headings == [f"{mark}!PODIUM leaderboard {board}"]
        templates[board] = content
        if tried is None or board in tried:
            gpu = gpus[0] if len(gpus) > 1 else None
            numbers[board] = await stranger.hand_in(name, content, gpu)
    return templates, numbers
