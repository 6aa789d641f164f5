"""Runs a dispatcher for the length of a test, with short waits, and stops it again."""

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bot.domain.errors import StoreError
from bot.domain.job import Notice, Topic
from bot.ports import Clock, Store
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from runners.contract.runner import Runner
from tests.doubles.memory_store import MemoryStore


@dataclass(frozen=True, slots=True)
class Running:
    """A running dispatcher."""

    stop: asyncio.Event
    task: asyncio.Task[None]

    async def end(self) -> None:
        """Stop it, and wait until it has drained."""
        self.stop.set()
        await asyncio.wait_for(self.task, 10)


@asynccontextmanager
async def dispatching(
    store: Store, clock: Clock, runners: Sequence[Runner], **config: object
) -> AsyncIterator[Running]:
    """A dispatcher with short waits; `config` has other values of DispatchConfig."""
    values: dict[str, Any] = {
        "worker": "w",
        "heartbeat_s": 0.01,
        "poll_s": 0.01,
        "retry_s": 0.01,
        "call_s": 10.0,
        "offer_s": 1.0,
        "drain_s": 0.05,
        "progress_s": 0.0,
    }
    made = DispatchConfig(**(values | config))
    dispatcher = Dispatcher(StoreQueue(store, made), runners, clock, made)
    stop = asyncio.Event()
    running = Running(stop, asyncio.create_task(dispatcher.run(stop)))
    try:
        yield running
    finally:
        await running.end()
        for runner in runners:
            await runner.aclose()


async def until(true: Callable[[], Awaitable[bool]], within_s: float = 5.0) -> None:
    """Wait until a condition is true; TimeoutError if it never is."""
    async with asyncio.timeout(within_s):
        while not await true():  # noqa: ASYNC110  what is waited for has no event of its own
            await asyncio.sleep(0.005)


def failing(store: MemoryStore, failures: dict[str, int], role: str = "jobs") -> MemoryStore:
    """The same store, but the named operations of one role fail the first few times."""
    altered = copy.copy(store)
    vars(altered)[role] = _Failing(getattr(store, role), failures)
    return altered


def failing_to_read(store: MemoryStore) -> MemoryStore:
    """The same store, but reading a submission fails."""
    altered = copy.copy(store)
    vars(altered)["submissions"] = _Failing(store.submissions, {"get": 1_000})
    return altered


class _Failing:
    """Forwards every operation unless it is to fail."""

    def __init__(self, jobs: object, failures: dict[str, int]) -> None:
        self._jobs = jobs
        self._failures = (failures,)  # a transaction of the store restores no tuples

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  a proxy of every operation
        (failures,) = self._failures
        if failures.get(name, 0) > 0:
            failures[name] -= 1
            raise StoreError("the database is away")
        return getattr(self._jobs, name)


def silent(store: MemoryStore) -> MemoryStore:
    """The same store, but its subscriptions never get a notice."""
    altered = copy.copy(store)
    vars(altered)["events"] = _Silence()
    return altered


class _Silence:
    @asynccontextmanager
    async def subscribe(
        self, topics: frozenset[Topic]
    ) -> AsyncIterator[AsyncIterator[Notice | None]]:
        async def ticks() -> AsyncIterator[Notice | None]:
            while True:
                await asyncio.sleep(0.05)
                yield None

        yield ticks()
