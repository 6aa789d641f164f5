"""Server-sent events, within bounds.

Their form: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from bot.domain.errors import StoreError

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
