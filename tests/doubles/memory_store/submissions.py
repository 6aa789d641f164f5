"""Submissions, their sources, and the requests of the evaluation server, in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bot.domain.board import TaskVersion
from bot.domain.errors import StoreError
from bot.domain.ids import (
    BoardId,
    JobId,
    PersonId,
    SubmissionId,
    TaskVersionId,
    is_system_submission,
)
from bot.domain.job import FINAL_STATES, Job, JobState, submission_state
from bot.domain.records import RequestCount, RequestRun
from bot.domain.submission import (
    KEY_TTL,
    IdempotencyKey,
    NewSubmission,
    Submission,
    SubmissionState,
    key_reused,
)
from bot.store.postgres.database import storable
from bot.store.postgres.submissions import source_hash
from runners.contract.evaluation import CPU
from runners.contract.task import TaskDefinition
from tests.doubles.memory_store.tables import Keyed, Pool, Shown, Tables


class MemorySubmissions:
    """Submissions by id; a source is kept once per hash."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def add(self, submission: NewSubmission) -> Submission:
        key = submission.idempotency_key
        if key is not None and (first := await self.first(submission.person, key)):
            return first
        self._admit(submission)
        stored = self.put(submission, SubmissionId(self._tables.next_id()))
        if key is not None:
            keyed = Keyed(key, stored.id, stored.created_at)
            self._tables.keys[submission.person, key.key] = keyed
        return stored

    async def first(self, person: PersonId, key: IdempotencyKey) -> Submission | None:
        keyed = self._tables.keys.get((person, key.key))
        if keyed is None or keyed.at <= self._tables.clock.now() - KEY_TTL:
            return None
        if keyed.key != key:
            raise key_reused(key.key)
        return self._current(self._tables.submissions[keyed.submission])

    async def delete_expired_keys(self) -> int:
        until = self._tables.clock.now() - KEY_TTL
        old = [key for key, row in self._tables.keys.items() if row.at <= until]
        for key in old:
            del self._tables.keys[key]
        return len(old)

    def put(self, submission: NewSubmission, number: SubmissionId) -> Submission:
        """Store a submission under this number, with its jobs."""
        digest = source_hash(submission.source)
        self._tables.sources.setdefault(digest, submission.source)
        stored = Submission(
            id=number,
            person=submission.person,
            board=submission.board,
            task_version=submission.task_version,
            file_name=storable(submission.file_name),
            source_hash=digest,
            mode=submission.mode,
            gpus=submission.gpus,
            state=SubmissionState.QUEUED,
            created_at=self._tables.clock.now(),
            profile=submission.profile,
            warning=storable(submission.warning),
            consent=submission.consent or self._tables.boards[submission.board].access.source,
        )
        self._tables.submissions[stored.id] = stored
        if submission.judged_again:
            self._tables.judged_again.add(stored.id)
        if submission.display is not None:
            shown = Shown(submission.display.door, storable(submission.display.place))
            self._tables.displays[stored.id] = shown
        for gpu in submission.gpus:
            self._tables.pools.setdefault(gpu, Pool())
            self._tables.put(self._new_job(submission, stored, gpu))
        return stored

    def _admit(self, new: NewSubmission) -> None:
        """UserError if a ban or a limit refuses the submission."""
        if new.judged_again:
            return
        ban = self._tables.ban_of(new.person)
        if ban is not None:
            raise ban.refusal
        now = self._tables.clock.now()
        reached = self._tables.limited_by(new.person, new.board, new.mode, now)
        if reached is not None:
            limit, counted = reached
            raise limit.refusal(counted, now)

    async def get(self, submission: SubmissionId) -> Submission | None:
        stored = self._tables.submissions.get(submission)
        return None if stored is None else self._current(stored)

    async def several(self, submissions: Sequence[SubmissionId]) -> tuple[Submission, ...]:
        found = [await self.get(number) for number in sorted(set(submissions))]
        return tuple(each for each in found if each is not None)

    async def newest(self, limit: int) -> tuple[Submission, ...]:
        own = (each.id for each in self._tables.submissions.values())
        newest = sorted((each for each in own if not is_system_submission(each)), reverse=True)
        return tuple(reversed(await self.several(newest[:limit])))

    async def to(self, board: BoardId) -> tuple[Submission, ...]:
        found = (
            one
            for one in self._tables.submissions.values()
            if one.board == board and not is_system_submission(one.id)
        )
        return tuple(self._current(one) for one in sorted(found, key=lambda one: one.id))

    async def write_note(self, submission: SubmissionId, note: str) -> None:
        stored = self._tables.submissions.get(submission)
        if stored is not None:
            self._tables.submissions[submission] = replace(stored, note=storable(note))

    async def source(self, submission: SubmissionId) -> str:
        stored = self._tables.submissions.get(submission)
        if stored is None:
            raise StoreError(f"there is no submission with id {submission}")
        return self._tables.sources[stored.source_hash]

    async def history(
        self,
        person: PersonId,
        board: BoardId | None = None,
        before: SubmissionId | None = None,
        limit: int = 50,
    ) -> tuple[Submission, ...]:
        found = [
            self._current(one)
            for one in self._tables.submissions.values()
            if one.person == person
            and (board is None or one.board == board)
            and (before is None or one.id < before)
            and not self._tables.boards[one.board].is_hidden
        ]
        return tuple(sorted(found, key=lambda one: one.id, reverse=True)[:limit])

    def _current(self, stored: Submission) -> Submission:
        states = tuple(job.state for job in self._tables.jobs_of(stored.id))
        return replace(stored, state=submission_state(states))

    def _new_job(self, new: NewSubmission, stored: Submission, gpu: str) -> Job:
        return Job(
            id=JobId(self._tables.next_id()),
            submission=stored.id,
            person=stored.person,
            gpu=gpu,
            mode=stored.mode,
            priority=new.priority,
            turn=self._tables.next_turn(stored.person, gpu, new.priority),
            state=JobState.QUEUED,
            attempt=0,
            max_attempts=new.max_attempts,
            fence=0,
            worker=None,
            call=None,
            cancel_requested=False,
            error=None,
            run_at=stored.created_at,
            created_at=stored.created_at,
            started_at=None,
            finished_at=None,
            pool=self._tables.boards[stored.board].pool_for(gpu, stored.mode),
            limit_s=new.limit_s,
            cards=1 if gpu == CPU else new.cards,
        )


class MemoryRequests:
    """The submissions to the system's board, with their versions."""

    def __init__(self, tables: Tables, submissions: MemorySubmissions) -> None:
        self._tables = tables
        self._submissions = submissions

    async def add(self, submission: NewSubmission, task: TaskDefinition, digest: str) -> Submission:
        if submission.board not in self._tables.boards:
            raise StoreError(f"there is no board with id {submission.board}")
        versions = self._versions(submission.board)
        known = next((each for each in versions if each.digest == digest), None)
        if known is not None:
            return await self._submissions.add(replace(submission, task_version=known.id))
        version = TaskVersion(
            TaskVersionId(self._tables.next_id()),
            submission.board,
            1 + max(each.number for each in versions),
            digest,
            task,
            self._tables.clock.now(),
        )
        stored = await self._submissions.add(replace(submission, task_version=version.id))
        self._tables.versions[version.id] = version
        return stored

    async def tallies(self, board: BoardId) -> dict[JobState, RequestCount]:
        now = self._tables.clock.now()
        found: dict[JobState, list[float]] = {}
        for job in self._jobs(board):
            found.setdefault(job.state, []).append((now - job.created_at).total_seconds())
        return {
            state: RequestCount(len(ages), sum(ages) / len(ages)) for state, ages in found.items()
        }

    async def newest(self, board: BoardId, limit: int) -> tuple[RequestRun, ...]:
        jobs = sorted(self._jobs(board), key=lambda job: job.submission, reverse=True)
        return tuple(self._run(job) for job in jobs[:limit])

    async def overdue(self, board: BoardId, age: timedelta) -> tuple[SubmissionId, ...]:
        before = self._tables.clock.now() - age
        found = (job for job in self._jobs(board) if job.state not in FINAL_STATES)
        return tuple(sorted(job.submission for job in found if job.created_at < before))

    async def delete_ended(
        self, board: BoardId, age: timedelta, person: PersonId | None = None
    ) -> int:
        before = self._tables.clock.now() - age
        doomed = {
            job.submission
            for job in self._jobs(board)
            if job.finished_at is not None
            and job.finished_at < before
            and person in {None, job.person}
        }
        hashes = {self._tables.submissions[each].source_hash for each in doomed}
        self._tables.forget_submissions(doomed)
        self._forget_sources(hashes)
        self._forget_versions(board)
        return len(doomed)

    def _forget_versions(self, board: BoardId) -> None:
        made = self._tables.submissions.values()
        needed = {each.task_version for each in made}
        needed.add(self._tables.boards[board].task_version)
        for version in self._versions(board):
            if version.id not in needed:
                del self._tables.versions[version.id]

    def _forget_sources(self, hashes: set[str]) -> None:
        for unneeded in hashes - {each.source_hash for each in self._tables.submissions.values()}:
            del self._tables.sources[unneeded]

    def _versions(self, board: BoardId) -> list[TaskVersion]:
        return [each for each in self._tables.versions.values() if each.board == board]

    def _jobs(self, board: BoardId) -> list[Job]:
        made: dict[SubmissionId, Submission] = self._tables.submissions
        return [job for job in self._tables.jobs.values() if made[job.submission].board == board]

    def _run(self, job: Job) -> RequestRun:
        stored = self._tables.evaluations.get(job.id)
        run = RequestRun(job.gpu, job.state, job.created_at, job.started_at, job.finished_at)
        if stored is None:
            return run
        evaluation = stored.evaluation
        return replace(
            run,
            verdict=evaluation.verdict,
            stage=evaluation.stage,
            used_s=evaluation.gpu_s,
            durations_s=evaluation.durations_s,
        )
