"""Parts of a page that update themselves: server-sent events, each with the part's new text."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi.responses import StreamingResponse

from bot.domain.errors import StoreError, UserError
from bot.web.context import WebContext

TICK_S = 1.0
_QUIET_S = 20.0
"""After this silence a comment is sent, to detect disconnected clients."""
LONGEST_S = 3_600.0
"""How long one response lasts; then the browser reconnects."""

Part = tuple[str, bool]
"""The text, and whether it is the last."""
Still = Callable[[], Awaitable[bool]]
"""Whether the watcher may still watch: see `auth.still_looks`."""


async def anybody() -> bool:
    """Return True, for parts that everyone may see."""
    return True


def live(
    door: WebContext, part: Callable[[], Awaitable[Part]], still: Still = anybody
) -> StreamingResponse:
    """Send the part now and after each change, until the last one or until the server closes.

    `still` is checked before each event: nothing is sent to a client that may no longer watch.
    """
    told = _telling(door, part, still)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(told, media_type="text/event-stream", headers=headers)


async def _telling(
    door: WebContext, part: Callable[[], Awaitable[Part]], still: Still
) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST_S
    told, told_at = "", loop.time()
    yield "retry: 3000\n\n"
    while not door.closing.begun and loop.time() < ends:
        text, last = await _read(part, told)
        due = text != told or last or loop.time() - told_at > _QUIET_S
        if due and not await _is_let(still):
            return
        if text != told:
            yield event("part", text)
        elif due and not last:
            yield ": still here\n\n"
        told, told_at = text, loop.time() if due else told_at
        if last:
            yield event("done", "")
            return
        await asyncio.sleep(TICK_S)


async def _read(part: Callable[[], Awaitable[Part]], told: str) -> Part:
    """Return the part, or the previous one if the database is unavailable or the part is gone."""
    try:
        return await part()
    except StoreError:
        return told, False
    except UserError:
        return told, True


async def _is_let(still: Still) -> bool:
    """Return whether the client may watch; if that is unknown, it is cut off and reconnects."""
    try:
        return await still()
    except StoreError:
        return False


def event(name: str, text: str) -> str:
    """Return one event in wire format; each line break in the text starts a new data line."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
