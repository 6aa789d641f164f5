import asyncio
from typing import Any

import pytest

from bot.domain.api.workers import LogLines
from bot.domain.errors import StoreError
from bot.remote.http import RefusedError
from bot.remote.worker import MAX_LINE_CHARS, MAX_LINES, MAX_LINES_PER_REQUEST, LogUpload


class Line:
    """A connection that keeps what is sent, unless it is to fail."""

    def __init__(self) -> None:
        self.sent: list[LogLines] = []
        self.failure: Exception | None = None

    async def send(self, path: str, body: LogLines) -> None:
        assert path == "log"
        if self.failure is not None:
            raise self.failure
        self.sent.append(body)

    @property
    def lines(self) -> list[str]:
        return [line for body in self.sent for line in body.lines]


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def upload(line: Line) -> LogUpload:
    connection: Any = line
    return LogUpload(connection)


async def test_lines_come_in_their_order_in_bundles(line: Line, upload: LogUpload) -> None:
    wanted = [str(number) for number in range(2 * MAX_LINES_PER_REQUEST + 1)]
    for each in wanted:
        upload.put(each)
    await upload.flush()
    assert line.lines == wanted
    assert len(line.sent) == 3
    await upload.flush()
    assert len(line.sent) == 3


async def test_what_could_not_be_sent_is_sent_later(line: Line, upload: LogUpload) -> None:
    upload.put("a")
    line.failure = StoreError("away")
    with pytest.raises(StoreError):
        await upload.flush()
    upload.put("b")
    line.failure = None
    await upload.flush()
    assert line.lines == ["a", "b"]


async def test_too_much_is_dropped_and_counted(line: Line, upload: LogUpload) -> None:
    for number in range(MAX_LINES + 5):
        upload.put(str(number))
    upload.put("x" * (2 * MAX_LINE_CHARS))
    await upload.flush()
    assert line.lines[0] == "6"
    assert len(line.lines[-1]) == MAX_LINE_CHARS
    assert sum(body.lost for body in line.sent) == 6


async def test_what_the_server_will_not_have_is_dropped(line: Line, upload: LogUpload) -> None:
    upload.put("a")
    line.failure = RefusedError("too long")
    await upload.flush()
    line.failure = None
    await upload.flush()
    assert (line.lines, line.sent[0].lost) == ([], 1)


async def test_the_last_lines_of_an_agent_are_sent(line: Line, upload: LogUpload) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(upload.run(stop, 0.01))
    upload.put("a")
    await asyncio.sleep(0.05)
    assert line.lines == ["a"]
    line.failure = StoreError("away")
    upload.put("b")
    await asyncio.sleep(0.05)
    line.failure = None
    stop.set()
    await asyncio.wait_for(running, 1)
    assert line.lines == ["a", "b"]
