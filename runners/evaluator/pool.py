"""The runner of an evaluator, and a cache that runs concurrent identical work only once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from runners import backends, plugins
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.gpus import find_gpu_type, slots_by_type
from runners.contract.runner import CallId, Capabilities, Runner, RunnerError, RunnerLostError
from runners.contract.task import TaskFormat
from runners.evaluator.config import EvaluatorConfig, InfrastructureError

GRACE_S = 240.0
"""Seconds by which an evaluation may exceed its task's limits. They cover a start on a slow disk
and the runner's own grace, after which the runner itself reports the failure."""
STOP_S = 30.0
"""Seconds for a runner to stop a call."""
CAPABILITIES_S = 300.0
"""Seconds for a runner to report its capabilities; it may have to start a harness for that."""


async def capabilities_of(runner: Runner) -> Capabilities:
    """The runner's capabilities; InfrastructureError if it does not report them."""
    try:
        async with asyncio.timeout(CAPABILITIES_S):
            return await runner.capabilities()
    except TimeoutError as error:
        message = f"runner {runner.name} reported no capabilities within {CAPABILITIES_S:.0f} s"
        raise InfrastructureError(message) from error
    except RunnerError as error:
        raise InfrastructureError(f"runner {runner.name}: {error}") from error


async def run_evaluation(
    runner: Runner, request: EvaluationRequest, attempts: int, grace_s: float = GRACE_S
) -> Evaluation:
    """The runner's evaluation; InfrastructureError if every attempt failed or one timed out.

    All attempts share the time limit, but that of an attempt lost with its machine does not count.
    """
    for attempts_left in reversed(range(attempts)):
        limit_s, attempt = request.left_s + grace_s, _Attempt()
        try:
            return await attempt.evaluation(runner, request, limit_s)
        except TimeoutError as error:
            message = f"runner {runner.name} returned no evaluation within {limit_s:.0f} s"
            raise InfrastructureError(message) from error
        except RunnerError as error:
            if not isinstance(error, RunnerLostError):
                used_s = request.used_s + attempt.used_s
                request = request.model_copy(update={"used_s": used_s})
            if not attempts_left or request.left_s <= 0:
                raise InfrastructureError(f"runner {runner.name}: {error}") from error
    raise ValueError("an evaluation needs at least one attempt")


class _Attempt:
    """One attempt, and when its evaluation began."""

    def __init__(self) -> None:
        self._began: float | None = None

    @property
    def used_s(self) -> float:
        """Seconds since the runner's first progress, with which an evaluation begins."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    async def evaluation(
        self, runner: Runner, request: EvaluationRequest, limit_s: float
    ) -> Evaluation:
        starting = asyncio.ensure_future(runner.start(request))
        try:
            async with asyncio.timeout(limit_s):
                return await runner.wait(await asyncio.shield(starting), self._note)
        except (TimeoutError, asyncio.CancelledError):
            await asyncio.shield(_stop(runner, starting))
            raise

    def _note(self, _: Progress) -> None:
        self._began = time.monotonic() if self._began is None else self._began


async def _stop(runner: Runner, starting: "asyncio.Future[CallId]") -> None:
    """Cancel the call as soon as its start has returned its id."""
    with suppress(TimeoutError, RunnerError):
        async with asyncio.timeout(STOP_S):
            await runner.cancel(await starting)


class EvaluatorPool:
    """A runner with a limit on concurrent evaluations.

    At most one evaluation per slot runs at once. A call therefore never waits in the runner's own
    queue, and its time limit need not include that wait.
    """

    def __init__(self, runner: Runner | None) -> None:
        self._runner = runner
        self._owns_runner = runner is None
        self._closed = False
        self._offers = DeduplicatingCache[Capabilities](lambda _: True)
        self._free: dict[tuple[str, int], asyncio.Semaphore] = {}

    async def offer(self, config: EvaluatorConfig) -> tuple[str, str]:
        """The GPU type on which kernels run, and the harness version."""
        _, capabilities = await self._open(config)
        return _gpu_of(config, capabilities), capabilities.harness_version

    @asynccontextmanager
    async def slot(self, config: EvaluatorConfig) -> AsyncIterator[Runner]:
        """The runner, with one slot reserved inside the block; callers wait in order."""
        runner, capabilities = await self._open(config)
        gpu = _gpu_of(config, capabilities)
        slots = capabilities.gpus[gpu]
        count = min(slots, config.max_concurrency or slots)
        free = self._free.setdefault((gpu, count), asyncio.Semaphore(count))
        try:
            async with asyncio.timeout(config.queue_timeout_s):
                await free.acquire()
        except TimeoutError as error:
            message = f"no slot of {gpu} was free for {config.queue_timeout_s:.0f} s"
            raise InfrastructureError(message) from error
        try:
            yield runner
        finally:
            free.release()

    async def aclose(self) -> None:
        """Close the runner if this pool created it."""
        self._closed = True
        if self._owns_runner and self._runner is not None:
            await self._runner.aclose()

    async def _open(self, config: EvaluatorConfig) -> tuple[Runner, Capabilities]:
        if self._closed:
            raise InfrastructureError("the evaluator is closed")
        if self._runner is None:
            self._runner = _create_runner(config)
        runner = self._runner
        capabilities, _ = await self._offers.get("offer", lambda: capabilities_of(runner), 1)
        return runner, capabilities


def _create_runner(config: EvaluatorConfig) -> Runner:
    slots = None if config.slots is None else slots_by_type(config.slots)
    try:
        runner: Runner = plugins.load(backends, config.backend).create(slots=slots)
    except (LookupError, RunnerError) as error:
        raise InfrastructureError(str(error)) from error
    return runner


def _gpu_of(config: EvaluatorConfig, capabilities: Capabilities) -> str:
    gpus = capabilities.gpus
    wanted = config.gpu_type or next(iter(gpus), "")
    gpu = find_gpu_type(wanted, gpus)
    if gpu is None or not gpus[gpu]:
        kinds = ", ".join(gpus) or "none"
        raise InfrastructureError(f"the runner has no GPU type {wanted!r}; it has {kinds}")
    if TaskFormat.KERNELBENCH not in capabilities.formats:
        raise InfrastructureError("the runner cannot judge tasks of format 'kernelbench'")
    return gpu


V = TypeVar("V")


@dataclass(slots=True)
class _Work(Generic[V]):
    """Running work for one key, and the number of its waiters."""

    task: "asyncio.Task[V]"
    waiters: int = 0


class DeduplicatingCache(Generic[V]):
    """Runs work once per key, and caches the most recently used results that `keep` accepts."""

    def __init__(self, keep: Callable[[V], bool]) -> None:
        self._keep = keep
        self._cache: OrderedDict[str, V] = OrderedDict()
        self._running: dict[str, _Work[V]] = {}

    async def get(
        self, key: str, make: Callable[[], Coroutine[Any, Any, V]], size: int
    ) -> tuple[V, bool]:
        """Return the value of a key, and whether it was cached or its work was already running.

        At most `size` values are cached. Work without waiters is canceled.
        """
        if key in self._cache:
            self._cache.move_to_end(key)
            return self._cache[key], True
        joined = key in self._running
        work = self._running.get(key) or self._begin(key, make, size)
        work.waiters += 1
        try:
            return await asyncio.shield(work.task), joined
        finally:
            work.waiters -= 1
            if not work.waiters:
                await self._cancel_unless_done(key, work)

    def _begin(self, key: str, make: Callable[[], Coroutine[Any, Any, V]], size: int) -> _Work[V]:
        work = self._running[key] = _Work(asyncio.create_task(make()))
        work.task.add_done_callback(lambda task: self._finish(key, task, size))
        return work

    def _finish(self, key: str, task: "asyncio.Task[V]", size: int) -> None:
        work = self._running.get(key)
        if work is not None and work.task is task:
            del self._running[key]
        if task.cancelled() or task.exception() is not None or not self._keep(task.result()):
            return
        self._cache[key] = task.result()
        while len(self._cache) > size:
            self._cache.popitem(last=False)

    async def _cancel_unless_done(self, key: str, work: _Work[V]) -> None:
        if work.task.done():
            return
        if self._running.get(key) is work:
            del self._running[key]
        work.task.cancel()
        await asyncio.wait({work.task})
