"""What many readers ask for at once: made by one of them, and kept for a moment for the others."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

MOST = 256
_STALE = 3
"""So many times the age at which a value is made anew it is still given while somebody does."""

Made = TypeVar("Made")


@dataclass(slots=True)
class _Entry:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    value: Any = None
    made_at: float | None = None

    def younger(self, age_s: float) -> bool:
        """Whether there is a value of less than this age."""
        return self.made_at is not None and _now() - self.made_at < age_s


class Kept:
    """Values by key; the least wanted are forgotten.

    A key says all that its value depends on, who may see it included.
    """

    def __init__(self, most: int = MOST) -> None:
        self._entries: OrderedDict[object, _Entry] = OrderedDict()
        self._most = most
        self._making: set[asyncio.Task[Any]] = set()

    async def get_within(
        self, key: object, fresh_s: float, limit_s: float, make: Callable[[], Awaitable[Made]]
    ) -> Made:
        """The same as `get`; TimeoutError after so many seconds, whatever still hangs then.

        A driver may take its time to give up on a server that says nothing: nobody waits for that.
        """
        making = asyncio.ensure_future(self.get(key, fresh_s, make))
        self._making.add(making)
        making.add_done_callback(self._ended)
        try:
            done, _ = await asyncio.wait({making}, timeout=limit_s)
        finally:
            making.cancel()
        if not done:
            raise TimeoutError(f"no answer within {limit_s:g} s")
        return making.result()

    def _ended(self, making: asyncio.Task[Any]) -> None:
        self._making.discard(making)
        if not making.cancelled():
            making.exception()  # seen, also where nobody waits for it any more

    async def get(self, key: object, fresh_s: float, make: Callable[[], Awaitable[Made]]) -> Made:
        """The value of a key, at most `fresh_s` seconds old, or thrice as old while it is made.

        What `make` raises is not kept: whoever waits for it tries next.
        """
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        if not entry.younger(fresh_s) and not (
            entry.lock.locked() and entry.younger(_STALE * fresh_s)
        ):
            async with entry.lock:
                if not entry.younger(fresh_s):
                    entry.value = await make()
                    entry.made_at = _now()
        made: Made = entry.value
        return made


def _now() -> float:
    return asyncio.get_running_loop().time()
