"""One worker: claims jobs for the slots of its runners, renews their leases, stores outcomes."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from enum import Enum

import structlog
from structlog.contextvars import bind_contextvars

from bot.domain.errors import StoreError, UserError
from bot.domain.ids import JobId
from bot.domain.job import GiveUpReason, LeasedJob, Notice, Topic
from bot.ports import Clock, WorkerQueue
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.execution import Execution, ExecutionRequest, LeaseLostError
from bot.services.dispatch.runner_pool import CannotServeError, RunnerPool
from runners.contract.evaluation import Evaluation
from runners.contract.runner import Runner, RunnerError, RunnerLostError

_log = structlog.get_logger(__name__)


class CancelCause(Enum):
    """Why work on a job stops before it ends."""

    LOST = "lost"
    """Another worker has the job, or will get it."""
    CANCELLED = "cancelled"
    """A person requested it."""
    DRAINED = "drained"
    """This worker is shutting down."""


class Attempt:
    """Holds one claimed job; `run` ends when its outcome is stored or the job is lost."""

    def __init__(
        self, job: LeasedJob, queue: WorkerQueue, pool: RunnerPool, config: DispatchConfig
    ) -> None:
        self.job = job
        self._queue = queue
        self._pool = pool
        self._config = config
        self._execution: Execution | None = None
        self._stop: CancelCause | None = None
        self._stopping = asyncio.Event()

    @property
    def started(self) -> bool:
        """Return whether a runner has been called for it."""
        return self._execution is not None and self._execution.started

    def stop(self, cause: CancelCause) -> None:
        """Stop the work. Only the first cause counts, and none after the work has ended."""
        if self._stop is None:
            self._stop = cause
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
            await self._finish(work)
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

    async def _finish(self, work: asyncio.Task[Evaluation]) -> None:
        is_evaluated = work.done() and not work.cancelled() and work.exception() is None
        if not is_evaluated and self._execution is not None:
            await self._execution.stop()
        try:
            await self._store_outcome(work)
        except UserError as error:  # from a remote queue that no longer accepts this worker
            _log.warning("the queue refuses", action="job-refused", error=error.message)
        except Exception:  # noqa: BLE001  a bug in one job must not stop the others
            incident = secrets.token_hex(4)
            _log.exception("bug in a job", action="job-bug", incident=incident)
            await self._give_up_failed(f"internal error, incident {incident}")

    async def _store_outcome(self, work: asyncio.Task[Evaluation]) -> None:
        if not work.done() or work.cancelled():
            await self._store_stop()
            return
        error = work.exception()
        if error is None:
            await self._accept(work.result())
        else:
            await self._store_failure(error)

    async def _store_failure(self, error: BaseException) -> None:
        message = str(error) or type(error).__name__
        match error:
            case LeaseLostError():
                _log.warning("lease was lost", action="lease-lost")
            case CannotServeError():
                await self._give_up(GiveUpReason.HOPELESS, message)
            case TimeoutError():
                await self._give_up(GiveUpReason.UNTOUCHED)
            case RunnerLostError() | StoreError():
                await self._give_up(GiveUpReason.LOST, message)
            case RunnerError():
                await self._give_up_failed(message)
            case _:
                raise error

    async def _accept(self, evaluation: Evaluation) -> None:
        if self._execution is None:
            raise LookupError("an evaluation without an execution")
        request = self._execution.order.request
        stored = await self._retry(lambda: self._queue.accept(self.job, request, evaluation))
        action = "job-accepted" if stored else "result-dropped"
        _log.info("evaluation", action=action, verdict=evaluation.verdict)

    async def _store_stop(self) -> None:
        match self._stop:
            case CancelCause.CANCELLED:
                used_s = 0.0 if self._execution is None else self._execution.used_s
                await self._give_up(GiveUpReason.CANCELLED, used_s=used_s)
            case CancelCause.DRAINED if not self.started or self.job.is_system_job:
                await self._give_up(GiveUpReason.UNTOUCHED)
            case CancelCause.DRAINED:
                await self._give_up(GiveUpReason.LOST, "the worker was stopped")
            case _:
                _log.warning("lease was lost", action="lease-lost")

    async def _give_up_failed(self, error: str) -> None:
        """End an attempt that failed; it is the last one if all attempts have used the limit."""
        used_s = left_s = 0.0
        if self._execution is not None:
            used_s = self._execution.used_s
            left_s = self._execution.order.request.left_s - used_s
        reason = GiveUpReason.FAILED if left_s > 0 else GiveUpReason.HOPELESS
        await self._give_up(reason, error, used_s)

    async def _give_up(self, reason: GiveUpReason, error: str = "", used_s: float = 0.0) -> None:
        log = _log.warning if error else _log.info
        log("attempt ended", action=f"job-{reason}", error=error)
        await self._retry(lambda: self._queue.give_up(self.job, reason, error, used_s))

    async def _retry(self, operation: Callable[[], Awaitable[bool]]) -> bool:
        """Retry until the queue answers, since only the queue knows whether the lease holds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.store_s
        wait_s = self._config.retry_s
        while True:
            try:
                return await operation()
            except StoreError as error:
                _log.warning("the store is unavailable", action="store-away", error=str(error))
                if loop.time() >= deadline:
                    return False
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, self._config.retry_max_s)


class Dispatcher:
    """A worker's main loop, until it is stopped and has drained; the caller closes the runners."""

    def __init__(
        self,
        queue: WorkerQueue,
        runners: Sequence[Runner],
        clock: Clock,
        config: DispatchConfig | None = None,
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._config = config or DispatchConfig()
        self._pool = RunnerPool(runners, self._config.offer_s, self._config.worker)
        self._attempts: dict[tuple[JobId, int], Attempt] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve jobs until `stop` is set, then finish the held jobs or return them to the queue.

        When cancelled, it returns them at once.
        """
        bind_contextvars(worker=self._config.worker)
        async with asyncio.TaskGroup() as group:
            background = [
                group.create_task(self._listen()),
                group.create_task(self._keep_leases()),
                group.create_task(self._keep_refreshing()),
                group.create_task(self._wake_when(stop)),
            ]
            try:
                await self._claim_until(stop)
                await self._drain(self._config.drain_s)
            except asyncio.CancelledError:
                await self._drain(0)
                raise
            finally:
                for task in (*background, *self._tasks):
                    task.cancel()
                with suppress(StoreError, UserError):
                    await self._queue.leave()

    async def _claim_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._wake.clear()
            await self._claim()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.poll_s):
                    await self._wake.wait()

    async def _claim(self) -> None:
        free = self._free()
        if not free:
            return
        try:
            jobs = await self._queue.claim(free, {gpu: self._pool.free(gpu) for gpu in free})
        except StoreError as error:
            _log.warning("claim failed", action="claim-failed", error=str(error))
            return
        for job in jobs:
            self._start(job)

    def _free(self) -> dict[str, int]:
        held = Counter(attempt.job.gpu for attempt in self._attempts.values())
        slots = self._pool.slots()
        return {gpu: count - held[gpu] for gpu, count in slots.items() if count > held[gpu]}

    def _start(self, job: LeasedJob) -> None:
        for attempt in self._attempts.values():
            if attempt.job.id == job.id:
                attempt.stop(CancelCause.LOST)
        waited_s = (self._clock.now() - job.created_at).total_seconds()
        attempt = Attempt(job, self._queue, self._pool, self._config)
        self._attempts[job.id, job.fence] = attempt
        running = self._run(attempt, waited_s)
        task = asyncio.create_task(running, name=f"attempt {job.id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, attempt: Attempt, waited_s: float) -> None:
        """Run in its own task, so that the bound log variables apply to this attempt only."""
        job = attempt.job
        bind_contextvars(submission=job.submission, job=job.id, fence=job.fence, gpu=job.gpu)
        _log.info("claimed", action="job-claimed", waited_s=waited_s)
        try:
            await attempt.run()
        except Exception:  # noqa: BLE001  the loop survives a bug; the lease returns the job
            _log.exception("bug in an attempt", action="attempt-bug")
        finally:
            self._attempts.pop((attempt.job.id, attempt.job.fence), None)
            self._wake.set()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.set()

    async def _listen(self) -> None:
        while True:
            try:
                async with self._queue.notices() as notices:
                    async for notice in notices:
                        await self._handle(notice)
            except StoreError as error:
                _log.warning("no notices", action="listen-failed", error=str(error))
            await asyncio.sleep(self._config.poll_s)

    async def _handle(self, notice: Notice | None) -> None:
        if notice is None:
            return
        if notice.topic is Topic.READY:
            self._wake.set()
        elif notice.payload in {str(job) for job, _ in self._attempts}:
            await self._renew_leases()

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(self._config.heartbeat_s)
            await self._renew_leases()
            await self._announce()

    async def _announce(self) -> None:
        """Store that this worker is live, and what it offers."""
        try:
            await self._queue.announce(self._pool.offers())
        except StoreError as error:
            _log.warning("not announced", action="announce-failed", error=str(error))

    async def _renew_leases(self) -> None:
        """Renew all leases at once, and stop what is lost or cancelled."""
        attempts = dict(self._attempts)
        if not attempts:
            return
        try:
            heartbeats = await self._queue.heartbeat([attempt.job for attempt in attempts.values()])
        except StoreError as error:
            _log.warning("heartbeat failed", action="beat-failed", error=str(error))
            return
        renewed = {heartbeat.job: heartbeat for heartbeat in heartbeats}
        for (job, _), attempt in attempts.items():
            if job not in renewed:
                attempt.stop(CancelCause.LOST)
            elif renewed[job].cancel_requested:
                attempt.stop(CancelCause.CANCELLED)

    async def _keep_refreshing(self) -> None:
        await self._announce()
        while True:
            await self._pool.refresh()
            self._wake.set()
            await self._announce()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.refresh_s):
                    await self._pool.offer_dropped.wait()

    async def _drain(self, limit_s: float) -> None:
        """Let running work end for up to `limit_s`, then stop it; start nothing more.

        Jobs of the system itself are stopped at once. Another worker runs them, or this one later.
        """
        for attempt in self._attempts.values():
            if not attempt.started or attempt.job.is_system_job:
                attempt.stop(CancelCause.DRAINED)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=limit_s)
        for attempt in self._attempts.values():
            attempt.stop(CancelCause.DRAINED)
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=2 * self._config.call_s)
