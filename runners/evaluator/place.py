"""Where an evaluator's kernels run: its runner, opened when it is first wanted, and its slots."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from runners import backends, plugins
from runners.contract.gpus import slots_by_type, spelled
from runners.contract.runner import Capabilities, Runner, RunnerError
from runners.contract.task import TaskFormat
from runners.evaluator.calls import offered
from runners.evaluator.config import EvaluatorConfig
from runners.evaluator.failures import InfrastructureError
from runners.evaluator.shared import Shared


class Place:
    """A runner and how many evaluations it can do at once.

    No more are begun than it has slots, so that the time of a call is the kernel's own and none is
    spent in a queue that nobody here can see.
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
        """The runner, while one of its slots is ours; in the order in which it was asked for."""
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
        """Close the runner, if it is ours."""
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
