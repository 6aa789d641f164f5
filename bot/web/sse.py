"""Parts of a page that go on by themselves: server-sent events, each the part's whole new text."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi.responses import StreamingResponse

from bot.domain.errors import StoreError, UserError
from bot.web.context import WebContext

TICK_S = 1.0
_QUIET_S = 20.0
"""After so long without anything new a comment is sent: who went away is noticed by it."""
LONGEST_S = 3_600.0
"""How long one answer lasts; the browser asks again by itself."""

Part = tuple[str, bool]
"""The text, and whether it is the last one."""
Still = Callable[[], Awaitable[bool]]
"""Whether who watches is still who began to: see `viewers.still_looks`."""


async def anybody() -> bool:
    """For parts that everybody may see."""
    return True


def live(
    door: WebContext, part: Callable[[], Awaitable[Part]], still: Still = anybody
) -> StreamingResponse:
    """The part now and whenever it changes, until it is the last one or the door closes.

    Before anything is told, `still` is asked: who may not watch any more is told nothing.
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
    """The part, or what was told before while the database is away, or once there is no part."""
    try:
        return await part()
    except StoreError:
        return told, False
    except UserError:
        return told, True


async def _is_let(still: Still) -> bool:
    """Whether they may watch; who cannot be asked about comes again by themselves."""
    try:
        return await still()
    except StoreError:
        return False


def event(name: str, text: str) -> str:
    """One event as it travels; whatever breaks a line in it becomes a line of it."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
