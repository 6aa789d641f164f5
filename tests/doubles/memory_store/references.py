"""The times of references in memory."""

from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.ids import SubmissionId, TaskVersionId
from bot.domain.job import Job, JobState
from bot.domain.reference import FAILED, Reference, Untimed, failure, failure_subject
from bot.domain.submission import NewSubmission
from bot.store.text import storable
from tests.doubles.memory_store.submissions import MemorySubmissions
from tests.doubles.memory_store.tables import Tables, TimedReference


class MemoryReferences:
    """Rows by task version and GPU type."""

    def __init__(self, tables: Tables, submissions: MemorySubmissions) -> None:
        self._tables = tables
        self._submissions = submissions

    async def lacking(self) -> tuple[Untimed, ...]:
        return tuple(
            Untimed(board.id, board.task_version, gpu)
            for _, board in sorted(self._tables.boards.items())
            for gpu in sorted(board.gpus)
            if (board.task_version, gpu) not in self._tables.references
        )

    async def order(self, submission: NewSubmission) -> bool:
        (gpu,) = submission.gpus
        if not await self.go_without(submission.task_version, gpu):
            return False
        number = SubmissionId(-self._tables.next_id())
        stored = self._submissions.put(replace(submission, judged_again=True), number)
        self._tables.references[stored.task_version, gpu] = TimedReference(stored.id)
        return True

    async def go_without(self, version: TaskVersionId, gpu: str) -> bool:
        known = (version, gpu) in self._tables.references
        if known or version not in self._tables.versions:
            return False
        self._tables.references[version, gpu] = TimedReference()
        return True

    async def forget_given_up(self, age: timedelta) -> int:
        before = self._tables.clock.now() - age
        old = [key for key, row in self._tables.references.items() if self._gave_up(row, before)]
        for key in old:
            del self._tables.references[key]
        return len(old)

    def _gave_up(self, row: TimedReference, before: datetime) -> bool:
        job = self._job(row)
        if job is None or job.state not in (JobState.FAILED, JobState.CANCELLED):
            return False
        return job.finished_at is not None and job.finished_at < before

    async def of(self, version: TaskVersionId, gpu: str) -> Reference | None:
        row = self._tables.references.get((version, gpu))
        if row is None:
            return None
        if row.value is not None:
            return Reference(row.submission, row.value, row.machine, row.at)
        return Reference(row.submission, failure=self._failure(row))

    async def note_failures(self) -> tuple[tuple[str, str], ...]:
        noted = []
        for (version_id, gpu), row in self._tables.references.items():
            reason = "" if row.noted or row.value is not None else self._failure(row)
            if reason:
                version = self._tables.versions[version_id]
                board = self._tables.boards[version.board]
                subject = failure_subject(board.name, version.number, gpu)
                self._tables.decided(None, FAILED, subject, reason)
                self._tables.references[version_id, gpu] = replace(row, noted=True)
                noted.append((subject, reason))
        return tuple(noted)

    def _failure(self, row: TimedReference) -> str:
        job = self._job(row)
        if job is None:
            return ""
        stored = self._tables.evaluations.get(job.id)
        if stored is None:
            return failure(job.state, job.error, None, None)
        evaluation = stored.evaluation
        return failure(job.state, job.error, evaluation.verdict, storable(evaluation.message))

    def _job(self, row: TimedReference) -> Job | None:
        if row.submission is None:
            return None
        (job,) = self._tables.jobs_of(row.submission)
        return job
