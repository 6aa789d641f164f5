"""Values that many ask for at the same time, made once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

Made = Callable[[], Awaitable[Value]]
Current = Callable[[Value, float], bool]
"""Whether a value is as good as a new one, by itself or by the seconds since it was made."""


@dataclass(slots=True)
class _Entry(Generic[Value]):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    values: tuple[Value, ...] = ()
    """None at first, then one."""
    made_at: float = 0.0
    current_at: float = 0.0
    """When it was last asked for and found to be as good as a new one."""

    def holds(self, current: Current[Value]) -> bool:
        """Whether there is a value, and it is current."""
        now = _now()
        if not self.values or not current(self.values[0], now - self.made_at):
            return False
        self.current_at = now
        return True

    def lags_less(self, seconds: float) -> bool:
        """Whether a value is made again just now, and was current so short a time ago."""
        return self.lock.locked() and bool(self.values) and _now() - self.current_at < seconds


class SharedCache(Generic[Value]):
    """Values by key; the least wanted are forgotten.

    A key says all that its value depends on, who may see it included.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._entries: OrderedDict[object, _Entry[Value]] = OrderedDict()

    def last(self, key: object) -> Value | None:
        """The value that there is, however old; None where none was made yet."""
        entry = self._entries.get(key)
        return entry.values[0] if entry and entry.values else None

    async def get(
        self, key: object, make: Made[Value], *, current: Current[Value], lag_s: float
    ) -> Value:
        """The value of a key: a current one, or what there was while somebody makes it again.

        What was not current for `lag_s` seconds is given to nobody. What `make` raises is not kept:
        the next that waits for it tries.
        """
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        while len(self._entries) > self.most:
            self._entries.popitem(last=False)
        if entry.holds(current) or entry.lags_less(lag_s):
            return entry.values[0]
        async with entry.lock:
            if not entry.holds(current):
                entry.values = (await make(),)
                entry.made_at = entry.current_at = _now()
            return entry.values[0]


def always(_: object, __: float) -> bool:
    """What never changes is current."""
    return True


def _now() -> float:
    return asyncio.get_running_loop().time()


MOST = 256
_LAG = 2
"""So many times the age at which a value is made again it is still given while somebody does."""

Cached = TypeVar("Cached")


class ResponseCache:
    """Values by key; a key says all that its value depends on, who may see it included."""

    def __init__(self, most: int = MOST) -> None:
        self._values = SharedCache[Any](most)
        self._making: set[asyncio.Task[Any]] = set()

    async def get_within(
        self, key: object, fresh_s: float, limit_s: float, make: Callable[[], Awaitable[Cached]]
    ) -> Cached:
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

    async def get(
        self, key: object, fresh_s: float, make: Callable[[], Awaitable[Cached]]
    ) -> Cached:
        """The value of a key, at most `fresh_s` seconds old, or thrice as old while it is made.

        What `make` raises is not kept: the next that waits for it tries.
        """
        made: Cached = await self._values.get(
            key, make, current=lambda _, age: age < fresh_s, lag_s=_LAG * fresh_s
        )
        return made
