"""The runner of an evaluator, deduplicated calls, and a cache of their results."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from runners import backends, plugins
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.gpus import slots_by_type, spelled
from runners.contract.runner import CallId, Capabilities, Runner, RunnerError
from runners.contract.task import TaskFormat
from runners.evaluator.config import EvaluatorConfig, InfrastructureError

GRACE_S = 240.0
"""How long an evaluation may exceed its task's limits: a start on a slow disk, and the runner's own
grace, after which the runner reports the failure itself."""
STOP_S = 30.0
"""Seconds for a runner to stop a call."""
OFFER_S = 300.0
"""Seconds for a runner to report its capabilities, which may need a first harness."""


async def offered(runner: Runner) -> Capabilities:
    """The runner's capabilities; InfrastructureError if it does not report them."""
    try:
        async with asyncio.timeout(OFFER_S):
            return await runner.capabilities()
    except TimeoutError as error:
        words = f"runner {runner.name} did not say within {OFFER_S:.0f} s what it offers"
        raise InfrastructureError(words) from error
    except RunnerError as error:
        raise InfrastructureError(f"runner {runner.name}: {error}") from error


async def evaluation(
    runner: Runner, request: EvaluationRequest, attempts: int, grace_s: float = GRACE_S
) -> Evaluation:
    """The runner's evaluation; InfrastructureError if every attempt failed."""
    limit_s = request.task.limit_s(request.mode) + grace_s
    for left in reversed(range(attempts)):
        try:
            return await _attempt(runner, request, limit_s)
        except TimeoutError as error:
            words = f"runner {runner.name} gave no evaluation within {limit_s:.0f} s"
            raise InfrastructureError(words) from error
        except RunnerError as error:
            if not left:
                raise InfrastructureError(f"runner {runner.name}: {error}") from error
    raise ValueError("an evaluation needs at least one attempt")


async def _attempt(runner: Runner, request: EvaluationRequest, limit_s: float) -> Evaluation:
    starting = asyncio.ensure_future(runner.start(request))
    try:
        async with asyncio.timeout(limit_s):
            return await runner.wait(await asyncio.shield(starting), _ignore)
    except (TimeoutError, asyncio.CancelledError):
        await asyncio.shield(_stop(runner, starting))
        raise


async def _stop(runner: Runner, starting: "asyncio.Future[CallId]") -> None:
    """Stop the call, even if it is only being started."""
    with suppress(TimeoutError, RunnerError):
        async with asyncio.timeout(STOP_S):
            await runner.cancel(await starting)


def _ignore(_: Progress) -> None:
    """Ignore the progress of one evaluation."""


class EvaluatorPool:
    """A runner with a limit on concurrent evaluations.

    It starts no more than the runner has slots, so the time limit of a call does not include
    waiting in the runner's own queue.
    """

    def __init__(self, runner: Runner | None) -> None:
        self._runner = runner
        self._own = runner is None
        self._closed = False
        self._offers = Shared[Capabilities](lambda _: True)
        self._free: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def offer(self, config: EvaluatorConfig) -> tuple[str, str]:
        """The GPU type on which kernels run, and the harness version."""
        _, found = await self._open(config)
        return _gpu_of(config, found), found.harness_version

    @asynccontextmanager
    async def slot(self, config: EvaluatorConfig) -> AsyncIterator[Runner]:
        """The runner, with one slot reserved inside the block; callers wait in order."""
        runner, found = await self._open(config)
        gpu = _gpu_of(config, found)
        count = min(found.gpus[gpu], config.max_concurrency or found.gpus[gpu])
        free = self._free.setdefault((gpu, count), asyncio.Semaphore(count))
        try:
            async with asyncio.timeout(config.queue_timeout_s):
                await free.acquire()
        except TimeoutError as error:
            words = f"no slot of {gpu} was free for {config.queue_timeout_s:.0f} s"
            raise InfrastructureError(words) from error
        try:
            yield runner
        finally:
            free.release()

    async def aclose(self) -> None:
        """Close the runner if this pool created it."""
        self._closed = True
        if self._own and self._runner is not None:
            await self._runner.aclose()

    async def _open(self, config: EvaluatorConfig) -> tuple[Runner, Capabilities]:
        if self._closed:
            raise InfrastructureError("the evaluator is closed")
        if self._runner is None:
            self._runner = _created(config)
        runner = self._runner
        found, _ = await self._offers.get("offer", lambda: offered(runner), 1)
        return runner, found


def _created(config: EvaluatorConfig) -> Runner:
    slots = None if config.slots is None else slots_by_type(config.slots)
    try:
        found: Runner = plugins.load(backends, config.backend).create(slots=slots)
    except (LookupError, RunnerError) as error:
        raise InfrastructureError(str(error)) from error
    return found


def _gpu_of(config: EvaluatorConfig, found: Capabilities) -> str:
    wanted = config.gpu_type or next(iter(found.gpus), "")
    gpu = spelled(wanted, found.gpus)
    if gpu is None or not found.gpus[gpu]:
        there = ", ".join(found.gpus) or "none"
        raise InfrastructureError(f"the runner has no GPU type {wanted!r}; it has {there}")
    if TaskFormat.KERNELBENCH not in found.formats:
        raise InfrastructureError("the runner cannot judge tasks of format 'kernelbench'")
    return gpu


V = TypeVar("V")


@dataclass(slots=True)
class _Flight(Generic[V]):
    """Running work for one key, and the number of its waiters."""

    task: "asyncio.Task[V]"
    waiting: int = 0


class Shared(Generic[V]):
    """Runs work once per key, and caches the latest results that `keep` accepts."""

    def __init__(self, keep: Callable[[V], bool]) -> None:
        self._keep = keep
        self._kept: OrderedDict[str, V] = OrderedDict()
        self._flights: dict[str, _Flight[V]] = {}

    async def get(
        self, key: str, make: Callable[[], Coroutine[Any, Any, V]], size: int
    ) -> tuple[V, bool]:
        """The value of a key, and whether it needed no new work; at most `size` values are cached.

        Work without waiters is cancelled.
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
