"""Jobs in Postgres."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import structlog
from asyncpg import Record

from bot.domain.costs import Prices
from bot.domain.errors import StoreError
from bot.domain.ids import NO_SUBMISSION, BoardId, EventId, JobId, PersonId, SubmissionId
from bot.domain.job import (
    Claim,
    Heartbeat,
    Job,
    JobEvent,
    JobState,
    UnfinishedJob,
    after_cancel,
    after_failure,
    after_loss,
    after_lost_lease,
    after_request,
    after_return,
)
from bot.domain.noise import passed_too_noisy
from bot.domain.reference_times import machine_of
from bot.domain.scoring import ScoreValue
from bot.domain.times import ratio_in_turn
from bot.ports import Clock
from bot.store.postgres.costs import postpone
from bot.store.postgres.database import Connection, Database, query, storable
from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode

EXPIRED_AT_ONCE = 500
DELETED_AT_ONCE = 10_000

_log = structlog.get_logger(__name__)


class PostgresJobs:
    """One row per job; each write of a worker names the fence of its lease."""

    def __init__(self, database: Database, clock: Clock, prices: Prices) -> None:
        self._database = database
        self._clock = clock
        self._prices = prices

    async def claim(self, claim: Claim) -> tuple[Job, ...]:
        claimed: list[Job] = []
        for gpu in sorted(claim.slots):
            try:
                claimed += await self._claim_of(gpu, claim)
            except StoreError as error:
                if not claimed:
                    raise
                _log.warning("a claim was cut short", action="claim-cut-short", error=str(error))
                break
        return tuple(claimed)

    async def _claim_of(self, gpu: str, claim: Claim) -> list[Job]:
        async with self._database.transaction() as connection:
            free = min(claim.slots[gpu], await _capacity(connection, gpu, claim.slots[gpu]))
            if free <= 0:
                return []
            now = self._clock.now()
            free_by_pool = {"": free, **claim.pools.get(gpu, {})}
            rooms = list(free_by_pool), [min(free, each) for each in free_by_pool.values()]
            await postpone(connection, self._prices, (gpu, free, now, *rooms))
            until = now + claim.lease
            found = await connection.fetch(
                query("jobs.claim"), gpu, free, now, claim.worker, until, *rooms
            )
        return [_job(row) for row in found]

    async def attach(self, job: JobId, fence: int, call: str) -> bool:
        return await self._database.row("jobs.attach", job, fence, call) is not None

    async def heartbeat(
        self, worker: str, held: Sequence[tuple[JobId, int]], lease: timedelta
    ) -> tuple[Heartbeat, ...]:
        jobs, fences = [job for job, _ in held], [fence for _, fence in held]
        until = self._clock.now() + lease
        found = await self._database.rows("jobs.heartbeat", worker, jobs, fences, until)
        heartbeats = [Heartbeat(JobId(row["id"]), row["cancel_requested"]) for row in found]
        return tuple(sorted(heartbeats, key=lambda each: each.job))

    async def accept(
        self, job: JobId, fence: int, evaluation: Evaluation, score: ScoreValue | None
    ) -> bool:
        ratio = None if score is None else ratio_in_turn(evaluation)
        row = await self._database.row(
            "jobs.accept",
            job,
            fence,
            evaluation.verdict.value,
            evaluation.stage,
            evaluation.message,
            evaluation.wall_s,
            evaluation.model_dump_json(exclude={"files"}),
            None if score is None else score.time_ns,
            None if score is None else score.half_width_ns,
            self._clock.now(),
            machine_of(evaluation.environment),
            evaluation.gpu_s,
            [each.name for each in evaluation.files],
            [each.zipped for each in evaluation.files],
            None if score is None else score.resolution_ns,
            None if score is None else score.claimed_ns,
            None if ratio is None else ratio.ratio,
            None if ratio is None else ratio.half_width,
            passed_too_noisy(evaluation),
        )
        return row is not None

    async def release(
        self, job: JobId, fence: int, error: str, *, final: bool, used_s: float = 0.0
    ) -> bool:
        def change(held: Job, now: datetime) -> Job:
            return after_failure(held, storable(error), now, final=final, used_s=used_s)

        return await self._leave(job, fence, change, (used_s, True))

    async def mark_lost(self, job: JobId, fence: int, error: str) -> bool:
        text = storable(error)
        return await self._leave(job, fence, lambda held, now: after_loss(held, text, now), None)

    async def return_to_queue(self, job: JobId, fence: int) -> bool:
        return await self._leave(job, fence, after_return, (0.0, True))

    async def end_cancelled(self, job: JobId, fence: int, used_s: float = 0.0) -> bool:
        return await self._leave(job, fence, after_cancel, (used_s, False))

    async def _leave(
        self,
        job: JobId,
        fence: int,
        change: Callable[[Job, datetime], Job],
        used: tuple[float, bool] | None,
    ) -> bool:
        """End a worker's lease with this change of the job; return whether it had the lease.

        `used` is how many seconds the attempt evaluated, and whether the fault is ours; None if it
        was lost.
        """
        async with self._database.transaction() as connection:
            row = await connection.fetchrow(query("jobs.lock_held"), job, fence)
            if row is not None:
                now = self._clock.now()
                if used is None:
                    await connection.execute(query("costs.add_lost"), [job], now)
                elif used[0]:
                    await connection.execute(query("costs.add_used"), job, *used, now)
                await _move(connection, [change(_job(row), now)], now)
        return row is not None

    async def request_cancel(self, submission: SubmissionId, why: str | None = None) -> int:
        why = None if why is None else storable(why)
        async with self._database.transaction() as connection:
            found = await connection.fetch(query("jobs.lock_unfinished"), submission)
            jobs = [job for job in map(_job, found) if not job.cancel_requested]
            now = self._clock.now()
            queued = [each for each in jobs if each.state is JobState.QUEUED]
            running = [job.id for job in jobs if job.state is JobState.RUNNING]
            await _move(connection, [after_request(each, now, why) for each in queued], now)
            await connection.execute(query("jobs.request_cancel"), running, why)
        return len(jobs)

    async def unfinished_of(self, person: PersonId) -> tuple[SubmissionId, ...]:
        found = await self._database.rows("jobs.unfinished_of", person)
        return tuple(SubmissionId(row["submission"]) for row in found)

    async def requeue_expired(self) -> int:
        requeued = 0
        while batch := await self._requeue_some():
            requeued += batch
        return requeued

    async def _requeue_some(self) -> int:
        now = self._clock.now()
        async with self._database.transaction() as connection:
            found = await connection.fetch(query("jobs.lock_expired"), now, EXPIRED_AT_ONCE)
            lost = [_job(row) for row in found]
            await connection.execute(query("costs.add_lost"), [job.id for job in lost], now)
            await _move(connection, [after_lost_lease(job, now) for job in lost], now)
            gpus = [job.gpu for job in lost]
            await connection.execute(query("operations.count_lost_leases"), gpus)
        for job in lost:
            _log.warning(
                "a lease has expired",
                action="lease-expired",
                submission=job.submission,
                job=job.id,
                fence=job.fence,
                worker=job.worker,
            )
        return len(lost)

    async def get(self, job: JobId) -> Job | None:
        row = await self._database.row("jobs.get", job)
        return None if row is None else _job(row)

    async def of(self, submission: SubmissionId) -> tuple[Job, ...]:
        return tuple(_job(row) for row in await self._database.rows("jobs.of", submission))

    async def ahead(self, job: JobId) -> int:
        async with self._database.connection() as connection:
            if await connection.fetchval(query("jobs.get"), job) is None:
                raise StoreError(f"there is no job with id {job}")
            return int(await connection.fetchval(query("jobs.ahead"), job))

    async def add_progress(
        self, job: JobId, fence: int, kind: str, body: dict[str, str | int]
    ) -> bool:
        now = self._clock.now()
        row = await self._database.row("jobs.add_progress", job, fence, kind, json.dumps(body), now)
        return row is not None

    async def events(self, submission: SubmissionId, after: EventId) -> tuple[JobEvent, ...]:
        found = await self._database.rows("jobs.events", submission, after)
        return tuple(_event(row) for row in found)

    async def latest(self, submission: SubmissionId) -> tuple[JobEvent, ...]:
        return tuple(map(_event, await self._database.rows("jobs.latest", submission)))

    async def delete_events(self, age: timedelta) -> int:
        before, total = self._clock.now() - age, 0
        while deleted := await self._database.rows("jobs.delete_events", before, DELETED_AT_ONCE):
            total += len(deleted)
        return total

    async def limit(self, gpu: str, max_running: int | None, *, paused: bool = False) -> None:
        await self._database.row("jobs.limit", gpu, max_running, paused)

    async def unfinished(
        self, gpus: Sequence[str], limit: int, person: PersonId | None = None
    ) -> tuple[UnfinishedJob, ...]:
        rows = await self._database.rows("jobs.unfinished", list(gpus), limit, person)
        return tuple(map(_unfinished_job, rows))

    async def backlog(self) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        for row in await self._database.rows("jobs.backlog"):
            counts.setdefault(row["gpu"], {})[row["state"]] = row["jobs"]
        return counts


def _unfinished_job(row: Record) -> UnfinishedJob:
    state = JobState(row["state"])
    since = row["started_at"] if state is JobState.RUNNING else row["created_at"]
    return UnfinishedJob(
        submission=SubmissionId(row["submission"]),
        person=PersonId(row["person"]),
        person_name=row["person_name"],
        board=BoardId(row["board"]),
        gpu=row["gpu"],
        mode=Mode(row["mode"]),
        state=state,
        since=since,
        position=row["position"],
    )


async def _capacity(connection: Connection, gpu: str, wanted: int) -> int:
    """Return how many more jobs the GPU type may run; its row is locked until the claim ends."""
    pool = await connection.fetchrow(query("jobs.lock_gpu"), gpu)
    if pool is None or pool["paused"]:
        return 0
    if pool["max_running"] is None:
        return wanted
    return int(pool["max_running"]) - int(await connection.fetchval(query("jobs.running"), gpu))


async def _move(connection: Connection, jobs: Sequence[Job], now: datetime) -> None:
    """Store jobs that this transaction has locked, in one statement."""
    if not jobs:
        return
    await connection.execute(
        query("jobs.move"),
        [job.id for job in jobs],
        [job.state.value for job in jobs],
        [job.attempt for job in jobs],
        [job.max_attempts for job in jobs],
        [job.worker for job in jobs],
        [job.call for job in jobs],
        [job.error for job in jobs],
        [job.run_at for job in jobs],
        [job.finished_at for job in jobs],
        now,
        [job.used_s for job in jobs],
    )


def _job(row: Record) -> Job:
    """Convert a row of `jobs`."""
    return Job(
        id=JobId(row["id"]),
        submission=SubmissionId(row["submission"] or NO_SUBMISSION),
        person=PersonId(row["person"]),
        gpu=row["gpu"],
        mode=Mode(row["mode"]),
        priority=row["priority"],
        turn=row["turn"],
        state=JobState(row["state"]),
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        fence=row["fence"],
        worker=row["worker"],
        call=row["call"],
        cancel_requested=row["cancel_requested"],
        error=without_worker(row["error"]),
        run_at=row["run_at"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        pool=row["pool"],
        check_run=row["check_run"],
        used_s=row["used_s"],
        limit_s=row["limit_s"],
        cards=row["cards"],
        waits=row["waits"],
    )


def _event(row: Record) -> JobEvent:
    """Convert a row of `job_events`."""
    return JobEvent(
        id=EventId(row["id"]),
        job=JobId(row["job"]),
        submission=SubmissionId(row["submission"]),
        kind=row["kind"],
        body=json.loads(row["body"]),
        at=row["at"],
    )


_NAMED_WORKER = re.compile(r"\Aworker \S+ vanished")


def without_worker(error: str | None) -> str | None:
    """Return a job's stored error without the worker's name that older versions included."""
    return None if error is None else _NAMED_WORKER.sub("the worker vanished", error)
