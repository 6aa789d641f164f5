"""Follows a submission by server-sent events, resumed where a connection broke.

Their form: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import SubmissionId
from bot.domain.status import SubmissionStatus
from bot.remote.client.requests import BUSY, PATIENCE_S, ApiClient, Outage, Say

EVENT_MAX = 1 << 20
"""Bytes of the longest event; the lines of one that is cut are never kept."""


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One event; `id` is what a later request resumes from, empty where the server gave none."""

    kind: str
    data: str
    id: str


class _Unfinished:
    """The lines of an event that has not ended."""

    def __init__(self) -> None:
        self.kind = ""
        self.data: list[str] = []
        self.id = ""

    def add(self, line: str) -> None:
        """Take one line; what the standard does not know is passed over, comments too."""
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                self.kind = value
            case "data":
                self.data.append(value)
            case "id":
                self.id = value
            case _:
                pass

    def ended(self) -> SentEvent | None:
        """The event, where its lines are one; the next one begins."""
        found = SentEvent(self.kind or "message", "\n".join(self.data), self.id)
        whole = bool(self.data)
        self.kind, self.data = "", []
        return found if whole else None


async def events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[SentEvent, None]:
    """The events of an answer, each once it is whole; StoreError for one that is too long.

    An event that the end of the answer cuts off is none.
    """
    rest, unfinished, size = b"", _Unfinished(), 0
    async for piece in pieces:
        rest += piece
        *lines, rest = rest.replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            size += len(line)
            if line:
                unfinished.add(line.decode("utf-8", "replace"))
                continue
            size = 0
            if (found := unfinished.ended()) is not None:
                yield found
        if size + len(rest) > EVENT_MAX:
            raise StoreError(f"the server sends an event of more than {EVENT_MAX} bytes")


HEAR_S = 60.0
"""Without a word from the server, not even that it has nothing to say, the line is broken."""
POLL_S = 10.0
"""Between two readings that no event asked for: a proxy may hold events back."""
BREATH_S = 0.5
"""Between two readings at the least: many events at once are one, and a server counts requests."""
_END = "end"
"""The kind of the last event."""

Read = Callable[[], Awaitable[SubmissionStatus]]


async def watch(
    requests: ApiClient,
    number: SubmissionId,
    read: Read,
    *,
    say: Say,
    patience_s: float = PATIENCE_S,
) -> AsyncGenerator[SubmissionStatus, None]:
    """The status now and whenever it has changed, up to the final one.

    A server that is away is asked again and again; SetupError once it was for `patience_s`.
    """
    last: SubmissionStatus | None = None
    line = _Line(requests, number)
    outage = Outage(requests.url, say, patience_s)
    while last is None or not last.is_final:
        try:
            async with aclosing(_readings(line, read)) as readings:
                async for reading in readings:
                    outage.over()
                    if reading != last:
                        last = reading
                        yield reading
            if last is None or not last.is_final:
                await asyncio.sleep(BREATH_S)
        except StoreError as error:
            await outage.wait(error)
        except UserError as error:
            if error.code != BUSY:
                raise
            await outage.wait(StoreError(error.message))


async def _readings(line: "_Line", read: Read) -> AsyncGenerator[SubmissionStatus, None]:
    """One reading at once, one for each hint, and one when the line has ended."""
    async with line.heard() as moved:
        reading, holds = await read(), True
        yield reading
        while holds and not reading.is_final:
            holds = await moved()
            reading = await read()
            yield reading


class _Line:
    """The server's events about one submission; it remembers the last one over broken lines."""

    def __init__(self, requests: ApiClient, number: SubmissionId) -> None:
        self._connection = requests.connection
        self._path = f"submissions/{number}/events"
        self._last = ""

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """A way to wait for the next event, or for a while; it gives whether more may come.

        A broken line is just at its end: the next reading tells whether the server is away.
        """
        event, ended = asyncio.Event(), asyncio.Event()
        hearing = asyncio.create_task(self._hear(event, ended))

        async def moved() -> bool:
            await _set(ended, BREATH_S)
            await _set(event, POLL_S)
            event.clear()
            if hearing.done():
                with suppress(StoreError):
                    hearing.result()
            return not hearing.done()

        try:
            yield moved
        finally:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _hear(self, event: asyncio.Event, ended: asyncio.Event) -> None:
        """Set `event` at every event, and `ended` too once there will be no more."""
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        pieces = self._connection.listen(self._path, headers=headers, within_s=HEAR_S)
        try:
            async with aclosing(pieces), aclosing(events(pieces)) as found:
                async for each in found:
                    self._last = each.id or self._last
                    event.set()
                    if each.kind == _END:
                        return
        finally:
            event.set()
            ended.set()


async def _set(event: asyncio.Event, within_s: float) -> None:
    """Wait until it is set, or so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
