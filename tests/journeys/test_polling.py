"""Forty participants with popcorn-cli, whose submissions wait for a machine that is not there yet.

Each hands in a kernel that the task ships, and asks every 5 s for a minute, as popcorn-cli does:
over one connection that is kept, and at the first question that fails it gives up.
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.architecture.tree import ROOT
from tests.doubles.moved_podium import FORWARD, STEP_S
from tests.doubles.popcorn_cli import Json, Line, form, upload_headers
from tests.e2e.command import Podium, fresh, read_until_up, terminate

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(240)]

PEOPLE = 40
POLLS = 12
"""Every 5 s for a minute."""
BOARD, GPU = "identity", "H100"
TASK = ROOT / "tasks" / "examples" / BOARD
KERNEL = TASK / "solutions" / "correct" / "torch_copy.py"


@dataclass(frozen=True, slots=True)
class Site:
    """A Podium that is up: its process, and its address."""

    process: subprocess.Popen[str]
    url: str
    podium: Podium


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with fresh() as podium:
        published = podium("task", "publish", TASK, "--gpu", GPU, "--unchecked")
        assert published.returncode == 0, published.stderr
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.doubles.moved_podium", "up"],
            env=podium.environment | {"PODIUM_HTTP_PORT": "0"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        try:
            (url,) = re.findall(r"https?://\S+", read_until_up(process))
            yield Site(process, url, podium)
        finally:
            terminate(process)


@dataclass(frozen=True, slots=True)
class Kept:
    """One popcorn-cli: a token, and the connection over which everything of it goes."""

    line: Line
    token: str
    host: str

    async def asked(
        self, method: str, path: str, headers: tuple[tuple[str, str], ...] = (), body: bytes = b""
    ) -> tuple[int, Json]:
        """The status and the body of an answer."""
        sent = (*headers, ("x-popcorn-cli-id", self.token), ("host", self.host))
        head = "".join(f"{name}: {value}\r\n" for name, value in sent)
        self.line.writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)
        async with asyncio.timeout(30):
            head = await self.line.head()
            return int(head.split()[1]), await self.line.json(head)

    async def hand_in(self) -> int:
        """The number of a submission."""
        body = form(KERNEL.read_bytes())
        path = f"/popcorn/submission/{BOARD}/{GPU}/leaderboard"
        status, found = await self.asked("POST", path, upload_headers(None, len(body)), body)
        assert status == 202, found
        number: int = found["details"]["id"]
        return number


@asynccontextmanager
async def kept(site: Site, token: str) -> AsyncIterator[Kept]:
    parts = urlsplit(site.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        yield Kept(Line(reader, writer), token, parts.netloc)
    finally:
        writer.transport.abort()


async def _passed(site: Site) -> None:
    """A while passes for the server, and it does what is due then."""
    site.process.send_signal(FORWARD)
    for _ in range(2):
        async with kept(site, "") as newcomer:
            assert (await newcomer.asked("GET", "/healthz"))[0] == 200
        await asyncio.sleep(0.15)  # it looks at its clock ten times a second


def _token(site: Site, person: str) -> str:
    made = site.podium("token", "create", "--person", person)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


async def test_forty_people_poll_for_a_minute_and_no_poll_fails(
    site: Site, pytestconfig: pytest.Config
) -> None:
    by_the_wall = pytestconfig.getoption("--wall-clock")
    tokens = [_token(site, name) for name in ("ada", "ken", "radia", "zoe")]
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(kept(site, tokens[number % len(tokens)]))
            for number in range(PEOPLE)
        ]
        numbers = await asyncio.gather(*(each.hand_in() for each in clients))
        assert len(set(numbers)) == PEOPLE
        for _ in range(POLLS):
            await (asyncio.sleep(STEP_S) if by_the_wall else _passed(site))
            polls = (
                each.asked("GET", f"/popcorn/user/submissions/{number}")
                for each, number in zip(clients, numbers, strict=True)
            )
            answers = await asyncio.gather(*polls, return_exceptions=True)
            assert [each for each in answers if isinstance(each, BaseException)] == []
            standings = [found for status, found in answers if status == 200]  # type: ignore[misc]
            assert len(standings) == PEOPLE
            assert not any(each["done"] for each in standings)
