"""How long each task's own reference takes, and what is still to be timed."""

from datetime import timedelta
from typing import Protocol

from bot.domain.ids import TaskVersionId
from bot.domain.reference_times import Reference, Untimed
from bot.domain.submission import NewSubmission


class References(Protocol):
    """One row per task version and GPU type, whose submission is the house's own.

    Such a submission has a number below zero (`is_the_houses`), no score, and no place in any
    history, export, statistic or list of refusals; its job counts in the `backlog`, for it takes a
    slot. `Jobs.accept` stores its time here, in the statement that ends its job.
    """

    async def lacking(self) -> tuple[Untimed, ...]:
        """The boards' present task versions and GPU types that have no row."""

    async def order(self, submission: NewSubmission) -> bool:
        """Store the row with the submission and its job; False when there is a row already.

        The submission is for one GPU type.
        """

    async def go_without(self, version: TaskVersionId, gpu: str) -> bool:
        """Store that the task has no reference to be timed; False when there is a row already."""

    async def forget_given_up(self, age: timedelta) -> int:
        """Remove the rows whose job ended so long ago without a verdict, so that they are lacking.

        Gives how many. That was our fault; a verdict is the reference's own, and stays.
        """

    async def of(self, version: TaskVersionId, gpu: str) -> Reference | None:
        """What is known; None when there is no row."""

    async def note_failures(self) -> tuple[tuple[str, str], ...]:
        """Put into the audit, once each, what could not be timed; gives subjects and reasons."""
