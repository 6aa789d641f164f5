"""Runs one job on a runner and reports its progress."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from bot.domain.errors import StoreError
from bot.domain.job import LeasedJob
from bot.domain.scoring import mismatch
from bot.ports import WorkerQueue
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.runner_pool import RunnerPool
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import CallId, Runner, RunnerError, UnknownCallError
from runners.contract.verdict import Stage

_CLOSING_S = 5.0
"""How long the last report may take when a progress feed is closed."""

_log = structlog.get_logger(__name__)


class ProgressFeed:
    """Reports each change of stage at once, and counts within a stage at most every `every_s`."""

    def __init__(self, report: Callable[[Progress], Awaitable[None]], every_s: float) -> None:
        self._report = report
        self._every_s = every_s
        self._pending: list[Progress] = []
        self._arrived = asyncio.Event()
        self._stage: Stage | None = None
        self._reported_at = 0.0
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run(), name="progress feed")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed = True
        self._arrived.set()
        if self._task is None:
            return
        done, _ = await asyncio.wait({self._task}, timeout=_CLOSING_S)
        if not done:
            self._task.cancel()
        elif self._task.exception() is not None:
            _log.error("progress was lost", action="progress-lost", exc_info=self._task.exception())

    def put(self, progress: Progress) -> None:
        """Take one progress update from the runner; never blocks. New counts replace older ones."""
        stale = {progress.stage, self._stage}
        if self._pending and self._pending[-1].stage in stale:
            self._pending[-1] = progress
        else:
            self._pending.append(progress)
        self._arrived.set()

    async def _run(self) -> None:
        while not self._closed:
            self._arrived.clear()
            due_s = self._due_s()
            if due_s is not None and due_s <= 0:
                progress = self._pending.pop(0)
                self._stage, self._reported_at = progress.stage, self._now()
                await self._report(progress)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(due_s):
                    await self._arrived.wait()

    def _due_s(self) -> float | None:
        """Return the seconds until the next report is due; None when there is none."""
        if not self._pending:
            return None
        if self._pending[0].stage is not self._stage:
            return 0.0
        return self._reported_at + self._every_s - self._now()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class LeaseLostError(Exception):
    """The store refused a write: this worker no longer holds the job."""


@dataclass(frozen=True, slots=True)
class ExecutionRequest:
    """A claimed job with its evaluation request, and the queue that records its progress."""

    job: LeasedJob
    request: EvaluationRequest
    queue: WorkerQueue
    config: DispatchConfig

    @property
    def limit_s(self) -> float:
        """Return the seconds after which a silent runner is considered dead."""
        return self.request.left_s + self.config.grace_s


class Execution:
    """One evaluation in progress on one runner; it can be stopped at any time."""

    def __init__(
        self, order: ExecutionRequest, pool: RunnerPool, on_lease_lost: Callable[[], None]
    ) -> None:
        self.order = order
        self._pool = pool
        self._on_lease_lost = on_lease_lost
        self._runner: Runner | None = None
        self._call: asyncio.Future[CallId] | None = None
        self._evaluating_since: float | None = None

    @property
    def used_s(self) -> float:
        """Return the seconds since the runner's first progress, with which an evaluation begins."""
        since = self._evaluating_since
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    @property
    def started(self) -> bool:
        """Return whether a runner has been called."""
        return self._call is not None

    async def evaluation(self) -> Evaluation:
        """Return the runner's evaluation.

        Raises RunnerError and CannotServeError unchanged, LeaseLostError when the job is lost, and
        TimeoutError when no slot became free.
        """
        evaluation = await self._join_earlier_call()
        if evaluation is not None and mismatch(self.order.request, evaluation) is None:
            return evaluation
        self._runner = self._call = None
        evaluation = await self._start_new_call()
        problem = mismatch(self.order.request, evaluation)
        if problem is not None:
            raise RunnerError(problem)
        return evaluation

    async def stop(self) -> None:
        """Stop the call, even one whose id the runner has not returned yet."""
        if self._runner is None or self._call is None:
            return
        try:
            async with asyncio.timeout(self.order.config.call_s):
                await self._runner.cancel(await self._call)
        except (RunnerError, TimeoutError) as error:
            _log.warning(
                "call was not stopped",
                action="cancel-failed",
                runner=self._runner.name,
                error=str(error),
            )

    async def _join_earlier_call(self) -> Evaluation | None:
        """Return the evaluation of an earlier attempt's call; None when there is no such call."""
        name, _, call = (self.order.job.call or "").partition("/")
        runner = self._pool.named(name)
        if runner is None or not call or not self._pool.in_pool(name, self.order.job.pool):
            return None
        async with self._pool.hold_slot_on(name, self.order.job.gpu):
            self._runner = runner
            self._call = asyncio.get_running_loop().create_future()
            self._call.set_result(CallId(call))
            try:
                return await self._wait(runner, CallId(call))
            except UnknownCallError:
                _log.info("call is gone", action="call-gone", call=call)
                return None

    async def _start_new_call(self) -> Evaluation:
        order = self.order
        async with (
            asyncio.timeout(order.config.slot_s) as deadline,
            self._pool.hold_slot(order.request.task, order.job.gpu, order.job.pool) as runner,
        ):
            deadline.reschedule(None)
            call = await self._start(runner)
            _log.info("call started", action="job-started", runner=runner.name, call=call)
            if not await self._attach(runner, call):
                raise LeaseLostError
            return await self._wait(runner, call)

    async def _start(self, runner: Runner) -> CallId:
        self._runner = runner
        self._call = asyncio.ensure_future(runner.start(self.order.request))
        try:
            async with asyncio.timeout(self.order.config.call_s):
                # Shielded: a call that starts while this is being stopped must be stopped too.
                return await asyncio.shield(self._call)
        except TimeoutError as error:
            self._pool.drop_offer(runner)
            raise RunnerError(f"runner {runner.name} did not start the call") from error
        except RunnerError:
            self._pool.drop_offer(runner)
            raise

    async def _attach(self, runner: Runner, call: CallId) -> bool:
        order = self.order
        for _ in range(max(1, round(order.config.lease.total_seconds() / order.config.retry_s))):
            try:
                return await order.queue.attach(order.job, f"{runner.name}/{call}")
            except StoreError as error:
                _log.warning("the call was not recorded", action="attach-failed", error=str(error))
            await asyncio.sleep(order.config.retry_s)
        return False

    async def _wait(self, runner: Runner, call: CallId) -> Evaluation:
        limit_s = self.order.limit_s

        def put(progress: Progress) -> None:
            if self._evaluating_since is None:
                self._evaluating_since = asyncio.get_running_loop().time()
            feed.put(progress)

        try:
            async with (
                asyncio.timeout(limit_s),
                ProgressFeed(self._report, self.order.config.progress_s) as feed,
            ):
                return await runner.wait(call, put)
        except TimeoutError as error:
            raise RunnerError(
                f"runner {runner.name} did not answer within {limit_s:.0f} s"
            ) from error

    async def _report(self, progress: Progress) -> None:
        job = self.order.job
        try:
            holds_lease = await self.order.queue.report_progress(job, progress)
        except StoreError as error:
            _log.info("progress was not stored", action="tell-failed", error=str(error))
            return
        if not holds_lease:
            self._on_lease_lost()
