"""Comparisons of submissions, and finals, in memory."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.confirmation import (
    MOST_ATTEMPTS,
    PRIORITY,
    Confirmation,
    ConfirmationState,
)
from bot.domain.finals import Final, FinalRow, NewFinal
from bot.domain.ids import (
    BoardId,
    ConfirmationId,
    FinalId,
    JobId,
    PersonId,
    SubmissionId,
    TaskVersionId,
    is_system_submission,
)
from bot.domain.job import FINAL_STATES, JobState, Notice, Topic
from bot.domain.scoring import PairRatio, Score, ScoreValue
from bot.domain.submission import NewSubmission
from runners.contract.task import Mode
from tests.doubles.memory_store.submissions import MemorySubmissions
from tests.doubles.memory_store.tables import Tables


class MemoryConfirmations:
    """Comparisons by number."""

    def __init__(self, tables: Tables, submissions: MemorySubmissions) -> None:
        self._tables = tables
        self._submissions = submissions

    async def unfinished(self) -> tuple[tuple[TaskVersionId, str], ...]:
        rows = self._tables.confirmations.values()
        waiting = {(each.task_version, each.gpu) for each in rows if each.is_pending}
        finals = self._tables.finals.values()
        return tuple(
            sorted(
                waiting | {(each.task_version, each.gpu) for each in finals if each.rows is None}
            )
        )

    async def lock(self, version: TaskVersionId, gpu: str) -> bool:
        return version in self._tables.versions and bool(gpu)

    async def hold(self, job: JobId, place: int) -> None:
        tables, held = self._tables, self._tables.jobs[job]
        value = tables.scores.pop(job)
        tables.unannounced.remove(job)
        row = self._put(held.submission, held.gpu, place)
        tables.confirmations[row.id] = replace(row, held=value)
        tables.held_scores[row.id] = job

    def _put(self, submission: SubmissionId, gpu: str, place: int) -> Confirmation:
        tables, of = self._tables, self._tables.submissions[submission]
        row = Confirmation(
            id=ConfirmationId(tables.next_id()),
            submission=submission,
            person=of.person,
            person_name=tables.shown_name(of.person, of.task_version, gpu),
            task_version=of.task_version,
            gpu=gpu,
            place=place,
            state=ConfirmationState.PENDING,
            created_at=tables.clock.now(),
            submitted_at=of.created_at,
        )
        tables.confirmations[row.id] = row
        return row

    async def of_run(self, run: SubmissionId) -> Confirmation | None:
        number = self._tables.confirmation_runs.get(run)
        return None if number is None else self._tables.confirmations.get(number)

    async def of(self, submission: SubmissionId) -> tuple[Confirmation, ...]:
        rows = self._tables.confirmations.values()
        return tuple(each for each in rows if each.submission == submission and each.final is None)

    async def concerning(self, submissions: Sequence[SubmissionId]) -> tuple[Confirmation, ...]:
        took = {ConfirmationState.CONFIRMED, ConfirmationState.TIED}
        rows = [each for each in self._tables.confirmations.values() if each.final is None]
        return tuple(
            each
            for each in rows
            if (counts := each.submission not in self._tables.exclusions) or not each.is_pending
            if each.submission in submissions
            or (each.rival in submissions and each.state in took and counts)
        )

    async def pending(self, version: TaskVersionId, gpu: str) -> tuple[Confirmation, ...]:
        rows = self._tables.confirmations.values()
        of_board = [each for each in rows if (each.task_version, each.gpu) == (version, gpu)]
        return tuple(each for each in of_board if each.is_pending)

    async def order(
        self,
        confirmation: ConfirmationId,
        rival: SubmissionId,
        system: PersonId,
        *,
        alone: SubmissionId | None = None,
    ) -> None:
        tables, row = self._tables, self._tables.confirmations[confirmation]
        of = tables.submissions[alone or row.submission]
        new = NewSubmission(
            person=system,
            board=of.board,
            task_version=row.task_version,
            file_name=f"confirmation of #{row.submission}",
            source=tables.sources[of.source_hash],
            mode=Mode.RANKED,
            gpus=(row.gpu,),
            priority=PRIORITY,
            max_attempts=MOST_ATTEMPTS,
            judged_again=True,
        )
        turn = self._turn(row)
        run = self._submissions.put(new, SubmissionId(-tables.next_id()))
        (job,) = tables.jobs_of(run.id)
        tables.put(replace(job, turn=turn))
        tables.confirmation_runs[run.id] = confirmation
        holder = tables.shown_name(tables.submissions[rival].person, row.task_version, row.gpu)
        ordered = replace(row, rival=rival, rival_name=holder, alone=alone, run=run.id)
        tables.confirmations[confirmation] = ordered

    def _turn(self, row: Confirmation) -> int:
        """The turn of a comparison: as a job of its person, after the person's other ones."""
        tables = self._tables
        own = [each for each in tables.confirmations.values() if each.person == row.person]
        waiting = [
            job.turn
            for each in own
            if each.is_pending and each.run is not None and each.gpu == row.gpu
            for job in tables.jobs_of(each.run)
            if job.state is JobState.QUEUED
        ]
        turn = tables.next_turn(row.person, row.gpu, PRIORITY)
        return max(turn, 1 + max(waiting, default=0))

    async def count(self, confirmation: ConfirmationId, attempts: int, failures: int) -> None:
        row = self._tables.confirmations[confirmation]
        counted = replace(row, attempts=attempts, failures=failures)
        self._tables.confirmations[confirmation] = counted

    async def settle(
        self,
        confirmation: ConfirmationId,
        state: ConfirmationState,
        *,
        ratio: PairRatio | None = None,
        reason: str = "",
    ) -> None:
        row = self._tables.confirmations[confirmation]
        now = self._tables.clock.now()
        settled = replace(row, state=state, ratio=ratio, reason=reason, decided_at=now)
        self._tables.confirmations[confirmation] = settled
        self._tables.subscriptions.publish(Notice(Topic.PROGRESS, str(row.submission)))

    async def enter(self, confirmation: Confirmation, value: ScoreValue) -> None:
        job = self._tables.held_scores[confirmation.id]
        self._tables.scores[job] = value
        self._tables.unannounced.append(job)

    async def follow(self, confirmation: Confirmation, value: ScoreValue, place: int) -> None:
        job = self._tables.held_scores[confirmation.id]
        row = self._put(confirmation.submission, confirmation.gpu, place)
        self._tables.confirmations[row.id] = replace(row, held=value)
        self._tables.held_scores[row.id] = job

    async def refuse(self, confirmation: Confirmation) -> None:
        """Do nothing: the results look for refused confirmations themselves."""

    async def compare(self, final: FinalId, submission: SubmissionId, place: int) -> ConfirmationId:
        row = self._put(submission, self._tables.finals[final].gpu, place)
        self._tables.confirmations[row.id] = replace(row, final=final)
        return row.id


class MemoryFinals:
    """Finals by number."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def start(self, new: NewFinal) -> Final | None:
        rows = self._tables.finals.values()
        here = [each for each in rows if (each.board, each.gpu) == (new.board, new.gpu)]
        if any(each.rows is None for each in here):
            return None
        final = Final(
            id=FinalId(self._tables.next_id()),
            board=new.board,
            task_version=new.task_version,
            gpu=new.gpu,
            top=new.top,
            created_at=self._tables.clock.now(),
        )
        self._tables.finals[final.id] = final
        return final

    async def of(self, board: BoardId) -> tuple[Final, ...]:
        newest = {each.gpu: each for each in self._tables.finals.values() if each.board == board}
        return tuple([await self._counted(newest[gpu]) for gpu in sorted(newest)])

    async def _counted(self, final: Final) -> Final:
        done = [each for each in await self.comparisons(final.id) if not each.is_pending]
        ended = max((each.decided_at for each in done if each.decided_at), default=None)
        if ended is None:
            return final
        took_s = (ended - min(each.created_at for each in done)).total_seconds()
        return replace(final, compared=len(done), comparison_s=took_s / len(done))

    async def running(self, version: TaskVersionId, gpu: str) -> Final | None:
        rows = self._tables.finals.values()
        here = [each for each in rows if (each.task_version, each.gpu) == (version, gpu)]
        found = next((each for each in here if each.rows is None), None)
        return None if found is None else await self._counted(found)

    async def unjudged(self, version: TaskVersionId, gpu: str) -> int:
        unfinished = (
            job
            for job in self._tables.jobs.values()
            if job.gpu == gpu and job.mode is Mode.RANKED and job.state not in FINAL_STATES
            if job.check_run is None and not is_system_submission(job.submission)
        )
        of = self._tables.submissions
        return sum(of[job.submission].task_version == version for job in unfinished)

    async def begin(self, final: FinalId, entries: tuple[SubmissionId, ...]) -> None:
        self._tables.finals[final] = replace(self._tables.finals[final], entries=entries)

    async def comparisons(self, final: FinalId) -> tuple[Confirmation, ...]:
        rows = self._tables.confirmations.values()
        return tuple(each for each in rows if each.final == final)

    async def rescore(self, score: Score) -> None:
        for job in self._tables.jobs_of(score.submission):
            if job.gpu == score.gpu and job.id in self._tables.scores:
                self._tables.scores[job.id] = score.value

    async def end(self, final: FinalId, rows: tuple[FinalRow, ...]) -> None:
        now, ended = self._tables.clock.now(), self._tables.finals[final]
        self._tables.finals[final] = replace(ended, rows=rows, ended_at=now)

    async def cancel(self, final: FinalId) -> tuple[SubmissionId, ...]:
        if self._tables.finals[final].rows is not None:
            return ()
        comparisons = await self.comparisons(final)
        for each in comparisons:
            del self._tables.confirmations[each.id]
        del self._tables.finals[final]
        return tuple(each.run for each in comparisons if each.is_pending and each.run is not None)
