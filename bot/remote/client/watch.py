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


class _EventLines:
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

    def finish(self) -> SentEvent | None:
        """Return the event, or None if it has no data; start the next one."""
        sent_event = SentEvent(self.kind or "message", "\n".join(self.data), self.id)
        has_data = bool(self.data)
        self.kind, self.data = "", []
        return sent_event if has_data else None


async def events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[SentEvent, None]:
    """Yield the complete events of a response; StoreError for one that is too long.

    An event cut off by the end of the response is dropped.
    """
    partial, lines_so_far, size = b"", _EventLines(), 0
    async for chunk in chunks:
        partial += chunk
        *lines, partial = partial.replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            size += len(line)
            if line:
                lines_so_far.add(line.decode("utf-8", "replace"))
                continue
            size = 0
            if (event := lines_so_far.finish()) is not None:
                yield event
        if size + len(partial) > EVENT_MAX:
            raise StoreError(f"the server sends an event of more than {EVENT_MAX} bytes")


SILENCE_LIMIT_S = 60.0
"""Seconds without data from the server, even a comment, after which the connection is broken."""
POLL_S = 10.0
"""Seconds between two polls without an event: a proxy may hold events back."""
MIN_POLL_S = 0.5
"""The least seconds between two polls: a burst of events causes one poll, not many requests."""
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
    stream = _EventStream(requests, number)
    outage = Outage(requests.url, say, patience_s)
    while last is None or not last.is_final:
        async with outage.waiting_out(), aclosing(_statuses(stream, read)) as statuses:
            async for status in statuses:
                outage.end()
                if status != last:
                    last = status
                    yield status
            if last is None or not last.is_final:
                await asyncio.sleep(MIN_POLL_S)


async def _statuses(stream: "_EventStream", read: Read) -> AsyncGenerator[SubmissionStatus, None]:
    """Yield one status at once, one for each event, and one when the connection has ended."""
    async with stream.connect() as next_event:
        status, is_open = await read(), True
        yield status
        while is_open and not status.is_final:
            is_open = await next_event()
            status = await read()
            yield status


class _EventStream:
    """The server's events about one submission; a new connection resumes after the last one."""

    def __init__(self, requests: ApiClient, number: SubmissionId) -> None:
        self._connection = requests.connection
        self._path = f"submissions/{number}/events"
        self._last = ""

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
        """Yield a function that waits briefly for an event and returns whether more may come.

        A broken connection only ends the events: the next poll shows whether the server answers.
        """
        event, ended = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(self._read_events(event, ended))

        async def next_event() -> bool:
            await _wait(ended, MIN_POLL_S)
            await _wait(event, POLL_S)
            event.clear()
            if task.done():
                with suppress(StoreError):
                    task.result()
            return not task.done()

        try:
            yield next_event
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _read_events(self, event: asyncio.Event, ended: asyncio.Event) -> None:
        """Set `event` at every event, and `ended` once there will be no more."""
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        chunks = self._connection.listen(self._path, headers=headers, within_s=SILENCE_LIMIT_S)
        try:
            async with aclosing(chunks), aclosing(events(chunks)) as sent:
                async for each in sent:
                    self._last = each.id or self._last
                    event.set()
                    if each.kind == _END:
                        return
        finally:
            event.set()
            ended.set()


async def _wait(event: asyncio.Event, within_s: float) -> None:
    """Wait until it is set, or for this long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await event.wait()
