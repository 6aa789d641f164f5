"""Work that several wait for and one does, and the results that are kept of it."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True)
class _Flight(Generic[V]):
    """One piece of work under way."""

    task: "asyncio.Task[V]"
    waiting: int = 0


class Shared(Generic[V]):
    """Does what is asked under one key once, and keeps the latest results that may be kept."""

    def __init__(self, keep: Callable[[V], bool]) -> None:
        self._keep = keep
        self._kept: OrderedDict[str, V] = OrderedDict()
        self._flights: dict[str, _Flight[V]] = {}

    async def get(
        self, key: str, make: Callable[[], Coroutine[Any, Any, V]], size: int
    ) -> tuple[V, bool]:
        """The value of a key, and whether no work was begun for it; `size` values are kept.

        Work that nobody waits for any more is cancelled.
        """
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key], True
        joined = key in self._flights
        flight = self._flights.get(key) or self._begin(key, make, size)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task), joined
        finally:
            flight.waiting -= 1
            if not flight.waiting:
                await self._give_up(key, flight)

    def _begin(self, key: str, make: Callable[[], Coroutine[Any, Any, V]], size: int) -> _Flight[V]:
        flight = self._flights[key] = _Flight(asyncio.create_task(make()))
        flight.task.add_done_callback(lambda task: self._land(key, task, size))
        return flight

    def _land(self, key: str, task: "asyncio.Task[V]", size: int) -> None:
        flight = self._flights.get(key)
        if flight is not None and flight.task is task:
            del self._flights[key]
        if task.cancelled() or task.exception() is not None or not self._keep(task.result()):
            return
        self._kept[key] = task.result()
        while len(self._kept) > size:
            self._kept.popitem(last=False)

    async def _give_up(self, key: str, flight: _Flight[V]) -> None:
        if flight.task.done():
            return
        if self._flights.get(key) is flight:
            del self._flights[key]
        flight.task.cancel()
        await asyncio.wait({flight.task})
