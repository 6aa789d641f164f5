"""Tests over real sockets, with the real limits, by a clock that is moved."""

import asyncio
import errno
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

import pytest

from bot.web import app, connections
from bot.web.connections import HEAD_S, IDLE_S, PER_ADDRESS, RECEIVE_S
from bot.web.context import HttpSettings
from bot.web.rendering import asset_url
from tests.architecture.tree import ROOT
from tests.doubles.agents import make_door
from tests.doubles.clock import ManualClock
from tests.doubles.loop_clock import LoopClock, moved
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place
from tests.doubles.popcorn_cli import PopcornCli, form, uploading

HERE = HttpSettings("127.0.0.1", 0)
TLS = ROOT / "tests" / "doubles" / "tls"
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: podium.test\r\n\r\n"
SOON_S = 10.0


@dataclass(frozen=True, slots=True)
class Line:
    """One connection of a client that never opens another."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, request: bytes = REQUEST) -> str:
        """The status line of an answer that is read whole."""
        self.writer.write(request)
        async with asyncio.timeout(SOON_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            await self.reader.readexactly(length)
        return head.partition("\r\n")[0]

    async def rest(self) -> bytes:
        """What comes until the door hangs up."""
        found = b""
        with suppress(ConnectionResetError):
            async with asyncio.timeout(SOON_S):
                while part := await self.reader.read(1 << 16):
                    found += part
        return found

    @property
    def ended(self) -> bool:
        return self.reader.at_eof() or self.reader.exception() is not None


class Connect(Protocol):
    """Opens a connection to a door, from an address of this machine."""

    async def __call__(
        self, url: str, address: str = "127.0.0.1", trust: ssl.SSLContext | None = None
    ) -> Line: ...


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Its connections are closed at the end."""
    lines: list[Line] = []

    async def to(url: str, address: str = "127.0.0.1", trust: ssl.SSLContext | None = None) -> Line:
        host, port = ("localhost" if trust else None), int(url.rpartition(":")[2])
        made = await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(address, 0), ssl=trust, server_hostname=host
        )
        lines.append(Line(*made))
        return lines[-1]

    yield to
    for line in lines:
        line.writer.transport.abort()
        with suppress(OSError):
            await line.writer.wait_closed()


async def settled() -> None:
    """Everything that was sent has arrived."""
    for _ in range(20):
        await asyncio.sleep(0.001)


@pytest.fixture
async def loop_clock() -> AsyncIterator[LoopClock]:
    with moved() as clock:
        yield clock


@asynccontextmanager
async def opened(place: Place, settings: HttpSettings = HERE) -> AsyncIterator[str]:
    async with app.serving(make_door(place.store, place.clock), settings) as url:
        yield url


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture
async def door(place: Place, loop_clock: LoopClock) -> AsyncIterator[str]:
    del loop_clock  # before the door opens
    async with opened(place) as url:
        yield url


async def test_between_two_requests_a_connection_is_kept_for_75_s(
    connect: Connect, door: str, loop_clock: LoopClock
) -> None:
    assert IDLE_S == 75
    line = await connect(door)
    for _ in range(3):
        assert await line.ask() == "http/1.1 200 ok"
        await loop_clock.move(IDLE_S - 1)
    assert await line.ask() == "http/1.1 200 ok"
    await loop_clock.move(IDLE_S + 1)
    assert await line.rest() == b""


async def test_who_says_nothing_is_hung_up_on_after_10_s(
    connect: Connect, door: str, loop_clock: LoopClock
) -> None:
    assert HEAD_S == 10
    line = await connect(door)
    await settled()
    await loop_clock.move(HEAD_S - 1)
    await settled()
    assert not line.ended
    await loop_clock.move(2)
    assert await line.rest() == b""


@pytest.mark.parametrize("before", [0, 1])
async def test_a_head_that_comes_in_drops_is_answered_408_after_10_s(
    connect: Connect, door: str, loop_clock: LoopClock, before: int
) -> None:
    line = await connect(door)
    for _ in range(before):
        await line.ask()
        await loop_clock.move(60)
    for drop in range(10):
        line.writer.write(REQUEST[drop : drop + 1])
        await settled()
        await loop_clock.move(1.1)
    answer = await line.rest()
    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"send it again" in answer


async def test_half_a_head_behind_a_whole_request_has_10_s_too(
    connect: Connect, door: str, loop_clock: LoopClock
) -> None:
    line = await connect(door)
    assert await line.ask(REQUEST + REQUEST[:20]) == "http/1.1 200 ok"
    await settled()
    await loop_clock.move(HEAD_S + 1)
    assert b" 408 " in await line.rest()


async def test_what_is_left_of_a_body_after_its_answer_has_10_s(
    connect: Connect, door: str, loop_clock: LoopClock
) -> None:
    line = await connect(door)
    head = b"POST /nothing HTTP/1.1\r\nHost: podium.test\r\nContent-Length: 99\r\n\r\n"
    assert "404" in await line.ask(head)
    for _ in range(10):
        line.writer.write(b".")
        await settled()
        await loop_clock.move(1.1)
    assert await line.rest() == b""


async def test_who_waits_for_news_is_not_hung_up_on(
    door: str, place: Place, loop_clock: LoopClock
) -> None:
    ada = await PopcornCli.of(place)
    async with uploading(door, str(ada.token), "/vectoradd/CPU/profile", form()) as line:
        await line.head()
        await line.event()
        for _ in range(5):
            await loop_clock.move(60)
            assert "event: status" in await line.event()


async def test_who_takes_nothing_of_an_answer_is_hung_up_on_after_75_s(
    connect: Connect, door: str, loop_clock: LoopClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = asyncio.Event()
    usual = connections.ClientConnection.pause_writing

    def pause_writing(held: connections.ClientConnection) -> None:
        usual(held)
        stuck.set()

    monkeypatch.setattr(connections.ClientConnection, "pause_writing", pause_writing)
    line = await connect(door)
    line.writer.transport.pause_reading()  # type: ignore[attr-defined]
    asked = 400
    path = asset_url("uplot-1.6.32.min.js")
    line.writer.write(f"GET {path} HTTP/1.1\r\nHost: podium.test\r\n\r\n".encode() * asked)
    async with asyncio.timeout(SOON_S):
        await stuck.wait()
    await loop_clock.move(RECEIVE_S + 1)
    await settled()
    line.writer.transport.resume_reading()  # type: ignore[attr-defined]
    assert (await line.rest()).count(b"HTTP/1.1 200 OK") < asked


async def test_of_an_address_with_64_connections_the_longest_idle_one_goes(
    connect: Connect, door: str
) -> None:
    assert PER_ADDRESS == 64
    lines = [await connect(door) for _ in range(PER_ADDRESS)]
    for line in lines:
        await line.ask()
    await lines[0].ask()
    neighbour = await connect(door, "127.0.0.2")
    assert await neighbour.ask() == "http/1.1 200 ok"
    newcomer = await connect(door)
    assert await newcomer.ask() == "http/1.1 200 ok"
    assert await lines[1].rest() == b""
    assert [each for each in lines if each.ended] == [lines[1]]
    assert await lines[0].ask() == "http/1.1 200 ok"


async def test_of_an_address_whose_connections_are_all_in_use_no_more_are_taken(
    connect: Connect,
    door: str,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(connections, "PER_ADDRESS", 1)
    ada = await PopcornCli.of(place)
    async with uploading(door, str(ada.token), "/vectoradd/CPU/profile", form()) as line:
        await line.head()
        for _ in range(3):
            refused = await connect(door)
            assert await refused.rest() == b""
        neighbour = await connect(door, "127.0.0.2")
        assert await neighbour.ask() == "http/1.1 200 ok"
        assert "event: status" in await line.event()
    said = capsys.readouterr().out
    assert said.count("connection-refused") == 1
    assert "PODIUM_HTTP_PROXIES" in said


async def test_a_trusted_proxy_has_as_many_as_it_wants(
    connect: Connect, place: Place, loop_clock: LoopClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del loop_clock
    monkeypatch.setattr(connections, "PER_ADDRESS", 2)
    async with opened(place, HttpSettings("127.0.0.1", 0, proxies=("127.0.0.0/30",))) as url:
        proxy = [await connect(url) for _ in range(5)]
        stranger = [await connect(url, "127.0.0.9") for _ in range(3)]
        for line in proxy:
            assert await line.ask() == "http/1.1 200 ok"
        assert [each.ended for each in stranger] == [True, False, False]


async def test_where_it_gets_crowded_the_longest_idle_ones_go(
    connect: Connect, place: Place, loop_clock: LoopClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    del loop_clock
    monkeypatch.setattr(app, "_connection_limit", lambda: 6)
    monkeypatch.setattr(app, "SPARE", 2)
    async with opened(place) as url:
        lines = [await connect(url) for _ in range(4)]
        for line in lines:
            await line.ask()
        await lines[0].ask()
        for number in (1, 2):
            newcomer = await connect(url)
            assert await newcomer.ask() == "http/1.1 200 ok"
            assert await lines[number].rest() == b""
        assert await lines[0].ask() == "http/1.1 200 ok"


async def test_who_begins_no_handshake_is_counted_and_hung_up_on(
    connect: Connect, place: Place, loop_clock: LoopClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_connection_limit", lambda: 4)
    monkeypatch.setattr(app, "SPARE", 2)
    trust = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
    settings = HttpSettings("127.0.0.1", 0, TLS / "certificate.pem", TLS / "key.pem")
    async with opened(place, settings) as url:
        silent = [await connect(url) for _ in range(3)]
        assert await silent[0].rest() == b""
        honest = await connect(url, trust=trust)
        assert await honest.ask() == "http/1.1 200 ok"
        assert await silent[1].rest() == b""
        await settled()
        assert not silent[2].ended
        await loop_clock.move(HEAD_S + 1)
        assert await silent[2].rest() == b""
        assert await honest.ask() == "http/1.1 200 ok"
        await connect(url)  # left in its handshake when the door closes


async def test_a_machine_with_few_files_gets_as_many_connections_as_it_can_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, 1024))
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: set_to.append(limits))
    assert app._connection_limit() == 1024 - app.OTHER_FILES
    assert set_to == [(1024, 1024)]


@pytest.mark.parametrize("number", [errno.ECONNABORTED, errno.EMFILE])
async def test_a_connection_that_cannot_be_accepted_keeps_no_later_one_out(
    connect: Connect, door: str, loop_clock: LoopClock, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    usual, failed = socket.socket.accept, asyncio.Event()

    def accept(listener: socket.socket) -> object:
        if not failed.is_set():
            failed.set()
            raise OSError(number, "not now")
        return usual(listener)

    monkeypatch.setattr(socket.socket, "accept", accept)
    line = await connect(door)
    await failed.wait()
    await loop_clock.move(app._RETRY_S)
    assert await line.ask() == "http/1.1 200 ok"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1"),
        ("2001:db8::1", "2001:db8::ffff:2"),
        ("fe80::1%eth0", "fe80::2%eth0"),
    ],
)
def test_a_household_is_counted_as_one(one: str, other: str) -> None:
    assert connections.address_group(one) == connections.address_group(other)
