"""The queue in memory, with the rules of the Postgres queue, and its workers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.costs import day_after, day_of, shortage
from bot.domain.errors import StoreError
from bot.domain.ids import EventId, JobId, PersonId, SubmissionId, is_system_submission
from bot.domain.job import (
    FINAL_STATES,
    Claim,
    Heartbeat,
    Job,
    JobEvent,
    JobState,
    UnfinishedJob,
    Worker,
    after_cancel,
    after_failure,
    after_loss,
    after_lost_lease,
    after_request,
    after_return,
)
from bot.domain.records import StoredEvaluation
from bot.domain.reference_times import machine_of
from bot.domain.scoring import ScoreValue
from bot.ports.queue import EMPTY
from bot.store.postgres.costs import AGAIN_LATER, AGAIN_SOON
from bot.store.postgres.database import storable
from runners.contract.evaluation import Evaluation
from runners.contract.runner import Capabilities
from runners.contract.verdict import Verdict
from tests.doubles.memory_store.costs import counted, reservation
from tests.doubles.memory_store.tables import Pool, Tables


class MemoryJobs:
    """Leases, fences, fair turns and events over a dict of jobs."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def claim(self, claim: Claim) -> tuple[Job, ...]:
        claimed: list[Job] = []
        for gpu in sorted(claim.slots):
            room = min(claim.slots[gpu], self._room(gpu))
            line = self._line(gpu, claim, room)
            while self._postpone_some(line):
                line = self._line(gpu, claim, room)
            claimed += [self._lease(job, claim) for job in line]
        return tuple(claimed)

    def _line(self, gpu: str, claim: Claim, room: int) -> list[Job]:
        due = [job for job in self._queued(gpu) if job.run_at <= self._tables.clock.now()]
        return _claimable(due, claim.pools.get(gpu, {}))[: max(0, room)]

    def _postpone_some(self, line: Iterable[Job]) -> bool:
        """Let the first job without room in a quota wait, and those like it."""
        tables, now = self._tables, self._tables.clock.now()
        planned, fitting = list(counted(tables, day_of(now))), set()
        for job in (each for each in line if tables.kind_of(each).counts):
            need = reservation(tables, job)
            short = shortage(tables.quotas.values(), planned, tables.prices, need)
            if short is None:
                planned.append(need)
                fitting.add(job.id)
                continue
            again = AGAIN_SOON if short.ends_with_jobs else AGAIN_LATER
            until, key = min(now + again, day_after(now)), short.quota.key
            for other in self._queued(job.gpu):
                its = reservation(tables, other)
                if (
                    tables.kind_of(other).counts
                    and other.run_at <= now
                    and other.id not in fitting
                    and its.reserved_s >= need.reserved_s
                    and (not key.each_person or its.person == need.person)
                    and key.board in {None, its.board}
                ):
                    tables.put(replace(other, run_at=until, waits=short.notice))
            return True
        return False

    async def attach(self, job: JobId, fence: int, call: str) -> bool:
        held = self._tables.held(job, fence)
        if held is not None:
            self._tables.put(replace(held, call=storable(call)))
        return held is not None

    async def heartbeat(
        self, worker: str, held: Sequence[tuple[JobId, int]], lease: timedelta
    ) -> tuple[Heartbeat, ...]:
        until = self._tables.clock.now() + lease
        beats: list[Heartbeat] = []
        for job_id, fence in sorted(held):
            job = self._tables.held(job_id, fence)
            if job is not None and job.worker == storable(worker):
                self._tables.leases[job_id] = until
                beats.append(Heartbeat(job_id, job.cancel_requested))
        return tuple(beats)

    async def accept(
        self, job: JobId, fence: int, evaluation: Evaluation, score: ScoreValue | None
    ) -> bool:
        held = self._tables.held(job, fence)
        if held is None:
            return False
        now = self._tables.clock.now()
        kept = evaluation.model_copy(update={"files": ()})
        self._tables.evaluations[job] = StoredEvaluation(job, held.gpu, kept, now)
        self._tables.tallied.append((held, self._tables.evaluations[job]))
        self._tables.files[job] = evaluation.files
        if score is not None and is_system_submission(held.submission):
            self._time_reference(held, evaluation, score)
        elif score is not None:
            self._tables.scores[job] = score
            self._tables.unannounced.append(job)
        ended = replace(held, state=JobState.SUCCEEDED, error=None, finished_at=now)
        fault = evaluation.verdict is Verdict.TASK_ERROR
        self._tables.add_gpu_time(held, evaluation.gpu_s, by_fault=fault)
        self._tables.put(ended)
        return True

    def _time_reference(self, job: Job, evaluation: Evaluation, value: ScoreValue) -> None:
        machine, now = machine_of(evaluation.environment), self._tables.clock.now()
        for key, row in self._tables.references.items():
            if row.submission == job.submission:
                timed = replace(row, value=value, machine=storable(machine), at=now)
                self._tables.references[key] = timed

    async def release(
        self, job: JobId, fence: int, error: str, *, final: bool, used_s: float = 0.0
    ) -> bool:
        held = self._tables.held(job, fence)
        if held is not None:
            now = self._tables.clock.now()
            failed = after_failure(held, storable(error), now, final=final, used_s=used_s)
            self._add_used(held, used_s, by_fault=True)
            self._tables.put(failed)
        return held is not None

    async def mark_lost(self, job: JobId, fence: int, error: str) -> bool:
        held = self._tables.held(job, fence)
        if held is not None:
            self._add_lost(held)
            self._tables.put(after_loss(held, storable(error), self._tables.clock.now()))
        return held is not None

    async def return_to_queue(self, job: JobId, fence: int) -> bool:
        held = self._tables.held(job, fence)
        if held is not None:
            self._tables.put(after_return(held, self._tables.clock.now()))
        return held is not None

    async def end_cancelled(self, job: JobId, fence: int, used_s: float = 0.0) -> bool:
        held = self._tables.held(job, fence)
        if held is not None:
            self._add_used(held, used_s, by_fault=False)
            self._tables.put(after_cancel(held, self._tables.clock.now()))
        return held is not None

    def _add_used(self, held: Job, used_s: float, *, by_fault: bool) -> None:
        if used_s:
            self._tables.add_gpu_time(held, used_s * held.cards, by_fault=by_fault)

    def _add_lost(self, held: Job) -> None:
        self._tables.add_gpu_time(held, self._tables.time_since_claim(held), by_fault=True)

    async def request_cancel(self, submission: SubmissionId, why: str | None = None) -> int:
        affected = [
            job
            for job in self._tables.jobs_of(submission)
            if job.state not in FINAL_STATES and not job.cancel_requested
        ]
        for job in affected:
            self._tables.put(after_request(job, self._tables.clock.now(), why))
        return len(affected)

    async def unfinished_of(self, person: PersonId) -> tuple[SubmissionId, ...]:
        found = self._tables.jobs.values()
        unfinished = {
            job.submission
            for job in found
            if job.person == person and job.state not in FINAL_STATES and job.check_run is None
        }
        return tuple(sorted(unfinished))

    async def requeue_expired(self) -> int:
        now = self._tables.clock.now()
        expired = [job for job, until in self._tables.leases.items() if until < now]
        for job in expired:
            self._tables.lost_leases[self._tables.jobs[job].gpu] += 1
            self._add_lost(self._tables.jobs[job])
            self._tables.put(after_lost_lease(self._tables.jobs[job], now))
        return len(expired)

    async def get(self, job: JobId) -> Job | None:
        return self._tables.jobs.get(job)

    async def of(self, submission: SubmissionId) -> tuple[Job, ...]:
        return self._tables.jobs_of(submission)

    async def ahead(self, job: JobId) -> int:
        found = self._tables.jobs.get(job)
        if found is None:
            raise StoreError(f"there is no job with id {job}")
        if found.state is not JobState.QUEUED:
            return 0
        place = _place_in_line(found)
        return sum(
            _place_in_line(job) < place
            for job in self._queued(found.gpu)
            if not found.pool or job.pool in ("", found.pool)
        )

    async def add_progress(
        self, job: JobId, fence: int, kind: str, body: dict[str, str | int]
    ) -> bool:
        held = self._tables.held(job, fence)
        if held is not None:
            self._tables.add_event(held, storable(kind), dict(body))
        return held is not None

    async def events(self, submission: SubmissionId, after: EventId) -> tuple[JobEvent, ...]:
        return tuple(
            event
            for event in self._tables.events
            if event.submission == submission and event.id > after
        )

    async def latest(self, submission: SubmissionId) -> tuple[JobEvent, ...]:
        newest = {event.job: event for event in self._tables.events}
        running = [job for job in self._tables.jobs_of(submission) if job.state is JobState.RUNNING]
        return tuple(newest[job.id] for job in running)

    async def delete_events(self, age: timedelta) -> int:
        before = self._tables.clock.now() - age
        kept = [event for event in self._tables.events if not self._is_old(event, before)]
        forgotten = len(self._tables.events) - len(kept)
        self._tables.events[:] = kept
        return forgotten

    def _is_old(self, event: JobEvent, before: datetime) -> bool:
        ended = self._tables.jobs[event.job].finished_at
        return event.at < before and ended is not None and ended < before

    async def limit(self, gpu: str, max_running: int | None, *, paused: bool = False) -> None:
        self._tables.pools[gpu] = Pool(max_running, paused)
        self._tables.announce(gpu)

    async def unfinished(
        self, gpus: Sequence[str], limit: int, person: PersonId | None = None
    ) -> tuple[UnfinishedJob, ...]:
        found: list[UnfinishedJob] = []
        for gpu in gpus:
            of_gpu = [each for each in self._tables.jobs.values() if each.gpu == gpu]
            running = [each for each in of_gpu if each.state is JobState.RUNNING]
            queued = [each for each in of_gpu if each.state is JobState.QUEUED]
            running.sort(key=lambda job: (job.started_at, job.id))
            queued.sort(key=lambda job: (-job.priority, job.turn, job.id))
            for line in (running, queued):
                found += [
                    self._unfinished_job(position, each)
                    for position, each in enumerate(line, start=1)
                    if each.submission > 0 and (position <= limit or each.person == person)
                ]
        return tuple(found)

    def _unfinished_job(self, position: int, job: Job) -> UnfinishedJob:
        since = job.started_at if job.state is JobState.RUNNING else job.created_at
        assert since is not None
        return UnfinishedJob(
            submission=job.submission,
            person=job.person,
            person_name=self._tables.people[job.person].name,
            board=self._tables.submissions[job.submission].board,
            gpu=job.gpu,
            mode=job.mode,
            state=job.state,
            since=since,
            position=position,
        )

    async def backlog(self) -> dict[str, dict[str, int]]:
        counts: dict[str, dict[str, int]] = {}
        for job in self._tables.jobs.values():
            if job.state not in FINAL_STATES:
                states = counts.setdefault(job.gpu, {})
                states[job.state.value] = states.get(job.state.value, 0) + 1
        return counts

    def _queued(self, gpu: str) -> list[Job]:
        jobs = self._tables.jobs.values()
        return [job for job in jobs if job.gpu == gpu and job.state is JobState.QUEUED]

    def _room(self, gpu: str) -> int:
        pool = self._tables.pools.get(gpu, Pool())
        jobs = self._tables.jobs.values()
        running = sum(job.gpu == gpu and job.state is JobState.RUNNING for job in jobs)
        if pool.paused:
            return 0
        return len(jobs) if pool.max_running is None else pool.max_running - running

    def _lease(self, job: Job, claim: Claim) -> Job:
        now = self._tables.clock.now()
        leased = replace(
            job,
            state=JobState.RUNNING,
            attempt=job.attempt + 1,
            fence=job.fence + 1,
            worker=storable(claim.worker),
            started_at=job.started_at or now,
            waits="",
        )
        self._tables.put(leased)
        self._tables.pass_turn(job)
        self._tables.leases[job.id] = now + claim.lease
        self._tables.claimed_at[job.id] = now
        return leased


class MemoryWorkers:
    """Workers by name; each is listed until its lease expires."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._known: dict[str, tuple[Worker, datetime]] = {}

    async def announce(
        self,
        worker: str,
        gpus: Sequence[str] | None,
        lease: timedelta,
        offers: Mapping[str, Capabilities] = EMPTY,
    ) -> None:
        offered, now = None if gpus is None else tuple(gpus), self._tables.clock.now()
        self._known[worker] = Worker(worker, offered, dict(offers), now), now + lease

    async def leave(self, worker: str) -> None:
        self._known.pop(worker, None)

    async def reporting(self) -> frozenset[str]:
        now = self._tables.clock.now()
        return frozenset(each.name for each in await self.alive() if not each.is_silent(now))

    async def lost(self) -> tuple[Worker, ...]:
        now = self._tables.clock.now()
        return tuple(
            Worker(name, known.gpus)
            for name, (known, until) in sorted(self._known.items())
            if now - timedelta(hours=1) <= until < now
        )

    async def alive(self) -> tuple[Worker, ...]:
        now = self._tables.clock.now()
        return tuple(
            replace(known, running=self._running(known.name))
            for _, (known, until) in sorted(self._known.items())
            if until >= now
        )

    def _running(self, worker: str) -> int:
        jobs = self._tables.jobs.values()
        return sum(job.state is JobState.RUNNING and job.worker == worker for job in jobs)


def _place_in_line(job: Job) -> tuple[int, int, JobId]:
    """The order in which the due jobs of a GPU type are claimed."""
    return -job.priority, job.turn, job.id


def _claimable(due: Iterable[Job], rooms: Mapping[str, int]) -> list[Job]:
    """The jobs that a worker with this many free slots per pool may claim, in claim order."""
    left = dict(rooms)
    line = []
    for job in sorted(due, key=_place_in_line):
        if job.pool and left.get(job.pool, 0) <= 0:
            continue
        if job.pool:
            left[job.pool] -= 1
        line.append(job)
    return line
