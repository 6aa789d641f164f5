"""Submissions and their sources in memory."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.errors import StoreError
from bot.domain.ids import BoardId, JobId, PersonId, SubmissionId, is_the_houses
from bot.domain.job import Job, JobState, submission_state
from bot.domain.moderation import banned
from bot.domain.once import KEPT, Once, reused
from bot.domain.submission import NewSubmission, Submission, SubmissionState
from bot.store.memory.tables import Keyed, Pool, Shown, Tables
from bot.store.sources import source_hash
from bot.store.text import storable


class MemorySubmissions:
    """Submissions by id; a source is kept once per hash."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def add(self, submission: NewSubmission) -> Submission:
        once = submission.once
        if once is not None and (first := await self.first(submission.person, once)):
            return first
        self._admit(submission)
        stored = self.put(submission, SubmissionId(self._tables.next_id()))
        if once is not None:
            keyed = Keyed(once, stored.id, stored.created_at)
            self._tables.keys[submission.person, once.key] = keyed
        return stored

    async def first(self, person: PersonId, once: Once) -> Submission | None:
        keyed = self._tables.keys.get((person, once.key))
        if keyed is None or keyed.at <= self._tables.clock.now() - KEPT:
            return None
        if keyed.once != once:
            raise reused(once.key)
        return self._current(self._tables.submissions[keyed.submission])

    async def forget_keys(self) -> int:
        until = self._tables.clock.now() - KEPT
        old = [key for key, row in self._tables.keys.items() if row.at <= until]
        for key in old:
            del self._tables.keys[key]
        return len(old)

    def put(self, submission: NewSubmission, number: SubmissionId) -> Submission:
        """Store it under this number, with its jobs."""
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
        """UserError for what a ban or a limit keeps out."""
        if new.judged_again:
            return
        reason = self._tables.bans.get(new.person)
        if reason is not None:
            raise banned(reason)
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

    async def to(self, board: BoardId) -> tuple[Submission, ...]:
        found = (
            one
            for one in self._tables.submissions.values()
            if one.board == board and not is_the_houses(one.id)
        )
        return tuple(self._current(one) for one in sorted(found, key=lambda one: one.id))

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
        )
