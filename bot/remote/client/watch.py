"""Follows a submission by server-sent events, and resumes after a broken connection.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass

from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.domain.status import SubmissionStatus
from bot.remote.client.requests import PATIENCE_S, ApiClient, Outage, Say

EVENT_MAX = 1 << 20
"""The most bytes of an event, so that an unfinished one stays bounded."""


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One event; a later request resumes from `id`, empty if the server gave none."""

    kind: str
    data: str
    id: str


class _Unfinished:
    """The lines of an incomplete event."""

    def __init__(self) -> None:
        self.kind = ""
        self.data: list[str] = []
        self.id = ""

    def add(self, line: str) -> None:
        """Add one line; comments and unknown fields are ignored."""
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
        """Return the event if its lines are one, and start the next."""
        found = SentEvent(self.kind or "message", "\n".join(self.data), self.id)
        whole = bool(self.data)
        self.kind, self.data = "", []
        return found if whole else None


async def events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[SentEvent, None]:
    """Yield the complete events of a response; StoreError for one that is too long.

    An event cut off by the end of the response is dropped.
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
"""Seconds without data from the server, even a comment, after which the connection is broken."""
POLL_S = 10.0
"""Seconds between two polls without an event: a proxy may hold events back."""
BREATH_S = 0.5
"""The least seconds between two polls: a burst of events causes one, as servers limit requests."""
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
    """Yield the status now and after each change, up to the final one.

    Retry while a server is unavailable; SetupError after `patience_s`.
    """
    last: SubmissionStatus | None = None
    line = _Line(requests, number)
    outage = Outage(requests.url, say, patience_s)
    while last is None or not last.is_final:
        async with outage.endured(), aclosing(_readings(line, read)) as readings:
            async for reading in readings:
                outage.over()
                if reading != last:
                    last = reading
                    yield reading
            if last is None or not last.is_final:
                await asyncio.sleep(BREATH_S)


async def _readings(line: "_Line", read: Read) -> AsyncGenerator[SubmissionStatus, None]:
    """Yield one status at once, one for each event, and one when the connection has ended."""
    async with line.heard() as moved:
        reading, holds = await read(), True
        yield reading
        while holds and not reading.is_final:
            holds = await moved()
            reading = await read()
            yield reading


class _Line:
    """The server's events about one submission; remembers the last one across connections."""

    def __init__(self, requests: ApiClient, number: SubmissionId) -> None:
        self._connection = requests.connection
        self._path = f"submissions/{number}/events"
        self._last = ""

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """Yield a function that waits for an event, at most a while; it returns if more may come.

        A broken connection just ends: the next poll shows whether the server is available.
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
        """Set `event` at every event, and `ended` once there will be no more."""
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
    """Wait until it is set, or for this long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
