"""One attempt at one job, from the claim to its single stored outcome."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

import structlog

from bot.domain.errors import StoreError, UserError
from bot.domain.job import GiveUpReason, LeasedJob
from bot.ports import WorkerQueue
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.execution import Execution, ExecutionRequest, LeaseLostError
from bot.services.dispatch.runner_pool import CannotServeError, RunnerPool
from runners.contract.evaluation import Evaluation
from runners.contract.runner import RunnerError, RunnerLostError

_log = structlog.get_logger(__name__)


class CancelCause(Enum):
    """Why work on a job stops before it ends."""

    LOST = "lost"
    """Another worker has the job, or will get it."""
    CANCELLED = "cancelled"
    """A person asked for it."""
    DRAINED = "drained"
    """This worker is shutting down."""


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What all attempts of a worker share."""

    queue: WorkerQueue
    pool: RunnerPool
    config: DispatchConfig


class Attempt:
    """Holds one claimed job; `run` ends when its outcome is stored or the job is lost."""

    def __init__(self, job: LeasedJob, around: AttemptContext) -> None:
        self.job = job
        self._queue = around.queue
        self._pool = around.pool
        self._config = around.config
        self._execution: Execution | None = None
        self._stop: CancelCause | None = None
        self._stopping = asyncio.Event()

    @property
    def started(self) -> bool:
        """Return whether a runner was asked to do anything for it."""
        return self._execution is not None and self._execution.started

    def stop(self, why: CancelCause) -> None:
        """Stop the work. Only the first cause counts, and none after the work has ended."""
        if self._stop is None:
            self._stop = why
            self._stopping.set()

    async def run(self) -> None:
        """Do the work and store its outcome; never raises for an error of one job."""
        work = asyncio.create_task(self._work(), name=f"job {self.job.id}")
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                work.cancel()
                await asyncio.wait({work}, timeout=self._config.call_s)
            await self._conclude(work)
        finally:
            stopping.cancel()
            work.cancel()

    async def _work(self) -> Evaluation:
        request = await self._queue.request(self.job)
        if request is None:
            raise LeaseLostError
        order = ExecutionRequest(self.job, request, self._queue, self._config)
        self._execution = Execution(order, self._pool, lambda: self.stop(CancelCause.LOST))
        return await self._execution.evaluation()

    async def _conclude(self, work: asyncio.Task[Evaluation]) -> None:
        if not work.done() or work.cancelled() or work.exception() is not None:
            await self._stop_call()
        try:
            await self._store_outcome(work)
        except UserError as error:  # from a remote queue that no longer accepts this worker
            _log.warning("the queue refuses", action="job-refused", error=error.message)
        except Exception:  # noqa: BLE001  a bug in one job must not stop the others
            incident = secrets.token_hex(4)
            _log.exception("bug in a job", action="job-bug", incident=incident)
            await self._give_up(GiveUpReason.FAILED, f"internal error, incident {incident}")

    async def _store_outcome(self, work: asyncio.Task[Evaluation]) -> None:
        if not work.done() or work.cancelled():
            await self._end_stopped()
            return
        error = work.exception()
        if error is None:
            await self._accept(work.result())
        else:
            await self._store_failure(error)

    async def _store_failure(self, error: BaseException) -> None:
        words = str(error) or type(error).__name__
        match error:
            case LeaseLostError():
                _log.warning("lease was lost", action="lease-lost")
            case CannotServeError():
                await self._give_up(GiveUpReason.HOPELESS, words)
            case TimeoutError():
                await self._give_up(GiveUpReason.UNTOUCHED)
            case RunnerLostError() | StoreError():
                await self._give_up(GiveUpReason.LOST, words)
            case RunnerError():
                await self._give_up(GiveUpReason.FAILED, words)
            case _:
                raise error

    async def _accept(self, evaluation: Evaluation) -> None:
        order = self._execution.order if self._execution else None
        if order is None:
            raise LookupError("an evaluation without an order")
        stored = await self._insist(lambda: self._queue.accept(self.job, order.request, evaluation))
        action = "job-accepted" if stored else "result-dropped"
        _log.info("evaluation", action=action, verdict=evaluation.verdict)

    async def _end_stopped(self) -> None:
        match self._stop:
            case CancelCause.CANCELLED:
                await self._give_up(GiveUpReason.CANCELLED)
            case CancelCause.DRAINED if not self.started or self.job.of_the_house:
                await self._give_up(GiveUpReason.UNTOUCHED)
            case CancelCause.DRAINED:
                await self._give_up(GiveUpReason.LOST, "the worker was stopped")
            case _:
                _log.warning("lease was lost", action="lease-lost")

    async def _give_up(self, why: GiveUpReason, error: str = "") -> None:
        tell = _log.warning if error else _log.info
        tell("attempt ended", action=f"job-{why}", error=error)
        await self._insist(lambda: self._queue.give_up(self.job, why, error))

    async def _stop_call(self) -> None:
        if self._execution is not None:
            await self._execution.stop()

    async def _insist(self, operation: Callable[[], Awaitable[bool]]) -> bool:
        """Retry until the queue answers, since only the queue knows whether the lease holds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.store_s
        wait_s = self._config.retry_s
        while True:
            try:
                return await operation()
            except StoreError as error:
                _log.warning("store is away", action="store-away", error=str(error))
                if loop.time() >= deadline:
                    return False
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, self._config.retry_most_s)
