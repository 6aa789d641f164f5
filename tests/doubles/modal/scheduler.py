"""Assigns inputs to containers, and applies time limits, retries and cancellation."""

import asyncio
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path

from modal_proto import api_pb2

from tests.doubles.modal.blobs import Blobs
from tests.doubles.modal.container import Container
from tests.doubles.modal.model import Function, Input, Result

_CRASHES = 2
"""After this many failed container starts the waiting inputs fail."""
_TRIED_AGAIN = (Result.GENERIC_STATUS_FAILURE, Result.GENERIC_STATUS_TIMEOUT)


@dataclass(slots=True, eq=False)
class Pool:
    """The containers of one function, and the inputs that wait for one."""

    function: Function
    pending: deque[Input] = field(default_factory=deque)
    containers: set[Container] = field(default_factory=set)
    wake: asyncio.Condition = field(default_factory=asyncio.Condition)
    crashes: int = 0

    @property
    def wants_another(self) -> bool:
        """Whether more inputs wait than containers are free, and another container is allowed."""
        free = sum(each.free for each in self.containers)
        room = len(self.containers) < self.function.limit and self.crashes < _CRASHES
        return room and len(self.pending) > free


class Scheduler:
    """Starts containers for inputs in their order of arrival, within each function's limit."""

    def __init__(
        self,
        folder: Path,
        python_path: tuple[str, ...],
        layout: Callable[[str], api_pb2.AppLayout],
    ) -> None:
        self.folder = folder
        self.python_path = python_path
        self.layout = layout
        self.blobs = Blobs()
        self.missing: Counter[str] = Counter()
        self.inputs: dict[str, Input] = {}
        self.pools: dict[str, Pool] = {}
        self.begun = 0
        """How many inputs were given to a container."""
        self._closing = False
        self._numbers = itertools.count(1)
        self._watches: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> tuple[Container, ...]:
        """The containers that have an input now."""
        every = (each for pool in self.pools.values() for each in pool.containers)
        return tuple(each for each in every if each.current is not None)

    async def submit(self, item: Input) -> None:
        """Accept an input; its output is stored in it later."""
        function = item.call.function
        pool = self.pools.setdefault(function.id, Pool(function))
        pool.pending.append(item)
        self.inputs[item.id] = item
        await self._scale(pool)
        async with pool.wake:
            pool.wake.notify_all()

    async def _scale(self, pool: Pool) -> None:
        while not self._closing and pool.wants_another:
            container = Container(self, pool.function, f"ta-{next(self._numbers)}")
            pool.containers.add(container)
            await container.start()
            self._keep(self._watch(pool, container))

    def _keep(self, watch: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(watch)
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)

    async def _watch(self, pool: Pool, container: Container) -> None:
        status = await container.ended()
        pool.containers.discard(container)
        result = container.exit_result(status)
        item = container.current
        if item is not None and item.output is None:
            await self.put_output(item.id, result, _format(result), container, item.tries)
        elif not container.served and result.status != Result.GENERIC_STATUS_SUCCESS:
            await self._count_crash(pool, result)
        await self._scale(pool)

    async def _count_crash(self, pool: Pool, result: Result) -> None:
        """Count a container that could not start; after too many, fail the waiting inputs."""
        pool.crashes += 1
        if pool.crashes < _CRASHES or self._closing:
            return
        failed = Result()
        failed.CopyFrom(result)
        failed.status = Result.GENERIC_STATUS_INIT_FAILURE
        while pool.pending:
            item = pool.pending.popleft()
            await self.put_output(item.id, failed, _format(failed), None, item.tries)
        pool.crashes = 0

    async def next_input(self, container: Container) -> Input | None:
        """The next input for a container; None if the container is to end."""
        pool = self.pools[container.function.id]
        if not container.free:
            return None
        try:
            async with asyncio.timeout(container.function.idle_s), pool.wake:
                await pool.wake.wait_for(lambda: bool(pool.pending))
                item = pool.pending.popleft()
        except TimeoutError:
            return None
        self.begun += 1
        container.current, container.served = item, container.served + 1
        item.container, item.started_at = container, time.time()
        self._keep(self._deadline(container, item, item.tries))
        return item

    async def _deadline(self, container: Container, item: Input, tries: int) -> None:
        limit = container.function.timeout_s
        await asyncio.sleep(limit)
        if item.output is None and item.tries == tries and container.current is item:
            words = f"Task's current input {item.id} hit its timeout of {limit}s"
            container.kill(Result(status=Result.GENERIC_STATUS_TIMEOUT, exception=words))

    async def put_output(
        self,
        item_id: str,
        result: Result,
        data_format: "api_pb2.DataFormat.ValueType",
        container: Container | None,
        tries: int,
    ) -> None:
        """Store the output of an input, unless it has one already."""
        item = self.inputs[item_id]
        if container is not None and container.current is item:
            container.current = None
        if item.output is not None or tries != item.tries:
            return
        if result.status in _TRIED_AGAIN and item.tries < item.call.function.retries:
            item.tries += 1
            await self.submit(item)
            return
        item.end(result, data_format)
        async with item.call.changed:
            item.call.changed.notify_all()
        if container is not None:
            await self._scale(self.pools[container.function.id])

    async def cancel(self, item: Input, *, terminate: bool) -> None:
        """Cancel an input; with `terminate` also kill its container."""
        words = "Input was cancelled by user"
        ended = Result(status=Result.GENERIC_STATUS_TERMINATED, exception=words)
        pool = self.pools[item.call.function.id]
        if item.output is not None:
            return
        if item in pool.pending or item.container is None:
            pool.pending.remove(item)
            await self.put_output(item.id, ended, _format(ended), None, item.tries)
        elif terminate:
            item.container.kill(ended)
        else:
            await item.container.cancelled.put(item.id)

    async def aclose(self) -> None:
        """Kill every container and wait until all have ended."""
        self._closing = True
        for pool in self.pools.values():
            for container in tuple(pool.containers):
                container.kill()
            while pool.containers:  # noqa: ASYNC110 - each ends by itself, and is watched
                await asyncio.sleep(0.01)
        for task in tuple(self._watches):
            task.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)


def _format(result: Result) -> "api_pb2.DataFormat.ValueType":
    return api_pb2.DATA_FORMAT_PICKLE if result.data else api_pb2.DATA_FORMAT_UNSPECIFIED
