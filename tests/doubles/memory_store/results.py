"""Accepted evaluations, scores and reference times in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from bot.domain.confirmation import Confirmation, ConfirmationState, with_former_runs
from bot.domain.finals import Final
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId, is_system_submission
from bot.domain.job import Job, JobState
from bot.domain.noise import passed_too_noisy
from bot.domain.records import FailedRun, JobResult, ScoreHistory, StoredEvaluation, StoredFile
from bot.domain.reference_times import FAILED, Reference, Untimed, failure, failure_subject
from bot.domain.scoring import (
    Entrant,
    PairRatio,
    Score,
    by_speed,
    by_submission_time,
    entrants,
    pool_of,
    records,
)
from bot.domain.submission import ExclusionKind, NewSubmission
from bot.domain.times import ratio_in_turn
from bot.store.postgres.database import storable
from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from tests.doubles.memory_store.submissions import MemorySubmissions
from tests.doubles.memory_store.tables import Tables, TimedReference


class MemoryResults:
    """Evaluations by job, and their scores."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def evaluations(self, submission: SubmissionId) -> tuple[StoredEvaluation, ...]:
        jobs = self._tables.jobs_of(submission)
        stored = self._tables.evaluations
        return tuple(stored[job.id] for job in jobs if job.id in stored)

    async def files(self, submission: SubmissionId) -> tuple[StoredFile, ...]:
        jobs, kept = self._tables.jobs_of(submission), self._tables.files
        return tuple(
            StoredFile(job.gpu, file)
            for job in sorted(jobs, key=lambda job: job.gpu)
            for file in sorted(kept.get(job.id, ()), key=lambda file: file.name)
        )

    async def outcomes(self, submissions: Sequence[SubmissionId]) -> tuple[JobResult, ...]:
        scores, excluded = self._tables.scores, self._tables.exclusions
        return tuple(
            [
                JobResult(
                    submission,
                    each.gpu,
                    each.evaluation.verdict,
                    scores.get(each.job),
                    exclusion=None if submission not in excluded else excluded[submission].kind,
                    noisy=passed_too_noisy(each.evaluation),
                )
                for submission in sorted(submissions)
                for each in await self.evaluations(submission)
            ]
        )

    async def scores(self, version: TaskVersionId, gpu: str) -> tuple[Score, ...]:
        found: list[Score] = []
        for job_id, value in self._tables.scores.items():
            job = self._tables.jobs[job_id]
            submission = self._tables.submissions[job.submission]
            excluded = submission.id in self._tables.exclusions
            if submission.task_version == version and job.gpu == gpu and not excluded:
                found.append(
                    Score(
                        submission=submission.id,
                        person=submission.person,
                        person_name=self._tables.shown_name(submission.person, version, gpu),
                        board=submission.board,
                        task_version=version,
                        gpu=gpu,
                        value=value,
                        submitted_at=submission.created_at,
                        pool=pool_of(job.worker, job.call),
                        met=self._met(submission.id, gpu),
                        vs_reference=ratio_in_turn(self._tables.evaluations[job_id].evaluation),
                    )
                )
        return tuple(sorted(found, key=lambda score: (score.value.upper_ns, score.submission)))

    def _met(
        self, submission: SubmissionId, gpu: str
    ) -> tuple[tuple[SubmissionId, PairRatio], ...]:
        rows = self._tables.confirmations.values()
        return tuple(
            (each.rival, each.ratio)
            for each in rows
            if (each.submission, each.gpu) == (submission, gpu)
            if each.rival is not None and each.ratio is not None
            if not self._disqualified(each.submission) and not self._disqualified(each.rival)
            if not any(self._replaces(final, each) for final in self._tables.finals.values())
        )

    def _disqualified(self, submission: SubmissionId) -> bool:
        found = self._tables.exclusions.get(submission)
        return found is not None and found.kind is ExclusionKind.DISQUALIFIED

    def _replaces(self, final: Final, met: Confirmation) -> bool:
        """Whether a comparison counts not yet, or not any more, because of this final."""
        if met.final == final.id:
            return final.rows is None
        if final.rows is None or met.gpu != final.gpu:
            return False
        own = [each.id for each in self._tables.confirmations.values() if each.final == final.id]
        among = {met.submission, met.rival} <= set(final.entries or ())
        return among and met.id < max(own, default=0)

    async def scores_of(
        self, person: PersonId, version: TaskVersionId, gpu: str
    ) -> tuple[Score, ...]:
        found = await self.scores(version, gpu)
        return tuple(
            sorted((each for each in found if each.person == person), key=by_submission_time)
        )

    async def score_history(self, version: TaskVersionId, gpu: str, most: int) -> ScoreHistory:
        found = sorted(await self.scores(version, gpu), key=by_submission_time)
        some = found[:: max(1, -(-len(found) // most))] if most else ()
        rivals = {rival for each in found for rival, _ in each.met}
        compared = (each for each in found if each.met or each.submission in rivals)
        bests = (each.best for each in entrants(found))
        shown = {*some, *records(found), *bests, *compared}
        return ScoreHistory(tuple(sorted(shown, key=by_submission_time)), len(found))

    async def fastest(self, leaderboards: Sequence[tuple[TaskVersionId, str]]) -> tuple[Score, ...]:
        found = [await self.scores(version, gpu) for version, gpu in leaderboards]
        return tuple(min(scores, key=by_speed) for scores in found if scores)

    async def entrants(self, version: TaskVersionId, gpu: str) -> tuple[Entrant, ...]:
        met = {each: self._met(each, gpu) for each in self._tables.submissions}
        return with_former_runs(entrants(await self.scores(version, gpu)), met)

    async def revision(self, version: TaskVersionId, gpu: str) -> int:
        """Return a new number at every call, so that no caller uses a cached result."""
        return self._tables.next_move()

    async def refusals(self, version: TaskVersionId, gpu: str) -> tuple[FailedRun, ...]:
        found: list[FailedRun] = []
        for job_id, stored in self._tables.evaluations.items():
            submission = self._tables.submissions[self._tables.jobs[job_id].submission]
            made = stored.evaluation
            refused = made.verdict is not Verdict.PASSED or passed_too_noisy(made)
            if submission.id in self._tables.confirmation_runs:
                found += self._refused_in(submission.id, stored.evaluation.verdict)
            here = submission.task_version == version and stored.gpu == gpu
            own = is_system_submission(submission.id)
            if refused and here and submission.mode is Mode.RANKED and not own:
                found.append(
                    FailedRun(
                        submission=submission.id,
                        person=submission.person,
                        person_name=self._tables.shown_name(submission.person, version, gpu),
                        gpu=gpu,
                        verdict=stored.evaluation.verdict.value,
                        stage=stored.evaluation.stage,
                        message=storable(stored.evaluation.message),
                        submitted_at=submission.created_at,
                    )
                )
        oldest_first = sorted(found, key=lambda refusal: refusal.submission)
        newest = {refusal.person: refusal for refusal in oldest_first}
        return tuple(sorted(newest.values(), key=lambda each: each.submission, reverse=True))

    def _refused_in(self, run: SubmissionId, verdict: Verdict) -> list[FailedRun]:
        """The submission that failed in this run of its confirmation."""
        of_run = self._tables.confirmations[self._tables.confirmation_runs[run]]
        if of_run.state is not ConfirmationState.REFUSED or of_run.run != run:
            return []
        submission = self._tables.submissions[of_run.submission]
        return [
            FailedRun(
                submission=submission.id,
                person=submission.person,
                person_name=self._tables.shown_name(
                    submission.person, of_run.task_version, of_run.gpu
                ),
                gpu=of_run.gpu,
                verdict=verdict.value,
                stage=None,
                message=of_run.reason,
                submitted_at=submission.created_at,
                in_confirmation=True,
            )
        ]

    async def durations(self, version: TaskVersionId, gpu: str, limit: int) -> tuple[float, ...]:
        found = [
            stored
            for stored in self._tables.evaluations.values()
            if stored.gpu == gpu
            and self._version_of(stored) == version
            and not is_system_submission(self._tables.jobs[stored.job].submission)
        ]
        newest = sorted(found, key=lambda stored: (stored.at, stored.job), reverse=True)
        return tuple(stored.evaluation.wall_s for stored in newest[:limit])

    async def gpu_durations(self, gpu: str, limit: int) -> tuple[float, ...]:
        found = [
            stored
            for stored in self._tables.evaluations.values()
            if stored.gpu == gpu
            and not is_system_submission(self._tables.jobs[stored.job].submission)
        ]
        newest = sorted(found, key=lambda stored: stored.job, reverse=True)
        return tuple(stored.evaluation.wall_s for stored in newest[:limit])

    def _version_of(self, stored: StoredEvaluation) -> TaskVersionId:
        job = self._tables.jobs[stored.job]
        return self._tables.submissions[job.submission].task_version


class MemoryReferences:
    """Rows by task version and GPU type."""

    def __init__(self, tables: Tables, submissions: MemorySubmissions) -> None:
        self._tables = tables
        self._submissions = submissions

    async def usual(
        self, version: TaskVersionId, measured_ns: Sequence[float]
    ) -> tuple[float, ...]:
        return self._tables.usual_references.setdefault(version, tuple(measured_ns))

    async def untimed(self) -> tuple[Untimed, ...]:
        return tuple(
            Untimed(board.id, board.task_version, gpu)
            for _, board in sorted(self._tables.boards.items())
            for gpu in sorted(board.gpus)
            if (board.task_version, gpu) not in self._tables.references
        )

    async def order(self, submission: NewSubmission) -> bool:
        (gpu,) = submission.gpus
        if not await self.mark_untimeable(submission.task_version, gpu):
            return False
        number = SubmissionId(-self._tables.next_id())
        stored = self._submissions.put(replace(submission, judged_again=True), number)
        self._tables.references[stored.task_version, gpu] = TimedReference(stored.id)
        return True

    async def mark_untimeable(self, version: TaskVersionId, gpu: str) -> bool:
        known = (version, gpu) in self._tables.references
        if known or version not in self._tables.versions:
            return False
        self._tables.references[version, gpu] = TimedReference()
        return True

    async def delete_given_up(self, age: timedelta) -> int:
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

    async def record_failures(self) -> tuple[tuple[str, str], ...]:
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
