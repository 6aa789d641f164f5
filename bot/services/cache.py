"""Caches values that many callers request at the same time; each is computed once."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")

Make = Callable[[], Awaitable[Value]]
Current = Callable[[Value, float], bool]
"""Whether a value with this age in seconds is still current."""


@dataclass(slots=True)
class _Entry(Generic[Value]):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    values: tuple[Value, ...] = ()
    """Empty at first, then one value."""
    made_at: float = 0.0
    current_at: float = 0.0
    """When the value was last found to be current."""

    def is_current(self, current: Current[Value]) -> bool:
        """Return whether there is a current value."""
        now = _now()
        if not self.values or not current(self.values[0], now - self.made_at):
            return False
        self.current_at = now
        return True

    def may_lag(self, seconds: float) -> bool:
        """Return whether the old value may be returned while a new one is being made."""
        return self.lock.locked() and bool(self.values) and _now() - self.current_at < seconds


class SharedCache(Generic[Value]):
    """A cache of values by key that drops the least recently used ones.

    A key contains everything that its value depends on, including who may see it.
    """

    def __init__(self, max_entries: int) -> None:
        self.max_entries = max_entries
        self._entries: OrderedDict[object, _Entry[Value]] = OrderedDict()

    def last(self, key: object) -> Value | None:
        """Return the cached value, however old; None when there is none."""
        entry = self._entries.get(key)
        return entry.values[0] if entry and entry.values else None

    async def get(
        self, key: object, make: Make[Value], *, current: Current[Value], lag_s: float
    ) -> Value:
        """Return the current value, or the previous one while another caller makes a new one.

        A value is not returned when it was last current `lag_s` seconds ago or more. When `make`
        raises, nothing is cached, and the next waiting caller tries.
        """
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        while len(self._entries) > self.max_entries:
            self._entries.popitem(last=False)
        if entry.is_current(current) or entry.may_lag(lag_s):
            return entry.values[0]
        async with entry.lock:
            if not entry.is_current(current):
                entry.values = (await make(),)
                entry.made_at = entry.current_at = _now()
            return entry.values[0]


def always(_: object, __: float) -> bool:
    """Return True, for values that never change."""
    return True


def _now() -> float:
    return asyncio.get_running_loop().time()


MAX_ENTRIES = 256
_LAG = 2
"""While a new value is made, the old one is returned for this many times `fresh_s` longer."""

Cached = TypeVar("Cached")


class ResponseCache:
    """A `SharedCache` of values of any type, each current for a time that the caller gives."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._values = SharedCache[Any](max_entries)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def get_within(
        self, key: object, fresh_s: float, limit_s: float, make: Callable[[], Awaitable[Cached]]
    ) -> Cached:
        """Do the same as `get`; TimeoutError after `limit_s`.

        A driver may take long to give up on a server that does not answer. The caller does not wait
        for that.
        """
        task = asyncio.ensure_future(self.get(key, fresh_s, make))
        self._tasks.add(task)
        task.add_done_callback(self._discard)
        try:
            done, _ = await asyncio.wait({task}, timeout=limit_s)
        finally:
            task.cancel()
        if not done:
            raise TimeoutError(f"no answer within {limit_s:g} s")
        return task.result()

    def _discard(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not warn when no caller waits

    async def get(
        self, key: object, fresh_s: float, make: Callable[[], Awaitable[Cached]]
    ) -> Cached:
        """Return a value at most `fresh_s` old, or three times that while a new one is made.

        When `make` raises, nothing is cached, and the next waiting caller tries.
        """
        value: Cached = await self._values.get(
            key, make, current=lambda _, age: age < fresh_s, lag_s=_LAG * fresh_s
        )
        return value
