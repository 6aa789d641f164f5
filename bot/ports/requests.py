"""Requests of the evaluation server: submissions that are kept for a while and then forgotten."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from bot.domain.ids import BoardId, PersonId, SubmissionId
from bot.domain.job import JobState
from bot.domain.records import RequestCount, RequestRun
from bot.domain.submission import NewSubmission, Submission
from runners.contract.task import TaskDefinition


class Requests(Protocol):
    """Submissions to one board of the house's own, each judged by a task made for it."""

    async def add(self, submission: NewSubmission, task: TaskDefinition, digest: str) -> Submission:
        """Store the submission with its job and the version that judges it, in one transaction.

        The board has each digest once, and its own version stays what it is; the version that the
        submission names is of no account. UserError as of `Submissions.add`.
        """

    async def tallies(self, board: BoardId) -> Mapping[JobState, RequestCount]:
        """How many requests are in each state; states without any are absent."""

    async def newest(self, board: BoardId, limit: int) -> tuple[RequestRun, ...]:
        """The newest requests, newest first."""

    async def overdue(self, board: BoardId, age: timedelta) -> tuple[SubmissionId, ...]:
        """What was asked so long ago and has not ended, oldest first."""

    async def forget(self, board: BoardId, age: timedelta, person: PersonId | None = None) -> int:
        """Remove what ended so long ago, of one person or of everybody; gives how many.

        With it goes what nothing refers to any more: their versions and sources.
        """
