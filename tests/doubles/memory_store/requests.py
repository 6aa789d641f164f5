"""Requests of the evaluation server in memory."""

from dataclasses import replace
from datetime import timedelta

from bot.domain.board import TaskVersion
from bot.domain.errors import StoreError
from bot.domain.evaluation_server.run import Run, Tally
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import FINAL_STATES, Job, JobState
from bot.domain.submission import NewSubmission, Submission
from runners.contract.task import TaskDefinition
from tests.doubles.memory_store.submissions import MemorySubmissions
from tests.doubles.memory_store.tables import Tables


class MemoryRequests:
    """The submissions to the house's board, with their versions."""

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

    async def tallies(self, board: BoardId) -> dict[JobState, Tally]:
        now = self._tables.clock.now()
        found: dict[JobState, list[float]] = {}
        for job in self._jobs(board):
            found.setdefault(job.state, []).append((now - job.created_at).total_seconds())
        return {state: Tally(len(ages), sum(ages) / len(ages)) for state, ages in found.items()}

    async def newest(self, board: BoardId, limit: int) -> tuple[Run, ...]:
        jobs = sorted(self._jobs(board), key=lambda job: job.submission, reverse=True)
        return tuple(self._run(job) for job in jobs[:limit])

    async def overdue(self, board: BoardId, age: timedelta) -> tuple[SubmissionId, ...]:
        before = self._tables.clock.now() - age
        found = (job for job in self._jobs(board) if job.state not in FINAL_STATES)
        return tuple(sorted(job.submission for job in found if job.created_at < before))

    async def forget(self, board: BoardId, age: timedelta, person: PersonId | None = None) -> int:
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

    def _run(self, job: Job) -> Run:
        stored = self._tables.evaluations.get(job.id)
        run = Run(job.gpu, job.state, job.created_at, job.started_at, job.finished_at)
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
