"""Comparisons of submissions with the holders of the first places, and finals."""

from collections.abc import Sequence
from typing import Protocol

from bot.domain.confirmation import Confirmation, ConfirmationState
from bot.domain.finals import Final, FinalRow, NewFinal
from bot.domain.ids import (
    BoardId,
    ConfirmationId,
    FinalId,
    JobId,
    PersonId,
    SubmissionId,
    TaskVersionId,
)
from bot.domain.scoring import PairRatio, Score, ScoreValue


class Confirmations(Protocol):
    """Comparisons of two submissions, each made by jobs of the system, one at a time."""

    async def unfinished(self) -> tuple[tuple[TaskVersionId, str], ...]:
        """Return the leaderboards with a pending comparison or a running final."""

    async def lock(self, version: TaskVersionId, gpu: str) -> bool:
        """Keep others from this leaderboard's comparisons until the transaction ends.

        False when another transaction has it.
        """

    async def hold(self, job: JobId, place: int) -> None:
        """Hold the score of this job back until it is confirmed: it is on no leaderboard."""

    async def of_run(self, run: SubmissionId) -> Confirmation | None:
        """Return the comparison for which the system's submission ran; None for any other."""

    async def of(self, submission: SubmissionId) -> tuple[Confirmation, ...]:
        """Return the comparisons of a submission outside of finals, oldest first."""

    async def concerning(self, submissions: Sequence[SubmissionId]) -> tuple[Confirmation, ...]:
        """Return the comparisons to show for these runs, without those of finals, oldest first.

        These are the ones that they needed, and those by which they lost or share a place. Leaves
        out the comparison that an excluded run waits for, and the places that it took.
        """

    async def pending(self, version: TaskVersionId, gpu: str) -> tuple[Confirmation, ...]:
        """Return the pending comparisons of a leaderboard, oldest first."""

    async def order(
        self,
        confirmation: ConfirmationId,
        rival: SubmissionId,
        system: PersonId,
        *,
        alone: SubmissionId | None = None,
    ) -> None:
        """Queue the job that compares with this rival, or one of the two with itself."""

    async def count(self, confirmation: ConfirmationId, attempts: int, failures: int) -> None:
        """Store how many runs have compared the two, and how often one of them failed alone."""

    async def settle(
        self,
        confirmation: ConfirmationId,
        state: ConfirmationState,
        *,
        ratio: PairRatio | None = None,
        reason: str = "",
    ) -> None:
        """End it; unless `enter` or `follow` is called, a score that was held back is dropped."""

    async def enter(self, confirmation: Confirmation, value: ScoreValue) -> None:
        """Put the score that was held back on its leaderboard, and announce it."""

    async def follow(self, confirmation: Confirmation, value: ScoreValue, place: int) -> None:
        """Hold the score, with this value, back for a comparison with another holder."""

    async def refuse(self, confirmation: Confirmation) -> None:
        """Store the last run as the reason why its person is not ranked."""

    async def compare(self, final: FinalId, submission: SubmissionId, place: int) -> ConfirmationId:
        """Store a comparison of a final, of a submission that would take `place`; return its id."""


class Finals(Protocol):
    """Finals; at most one runs per board and GPU type."""

    async def start(self, new: NewFinal) -> Final | None:
        """Store a final; None while one of this board and GPU type runs."""

    async def of(self, board: BoardId) -> tuple[Final, ...]:
        """Return the newest final of each GPU type of a board."""

    async def running(self, version: TaskVersionId, gpu: str) -> Final | None:
        """Return the running final of a leaderboard."""

    async def unjudged(self, version: TaskVersionId, gpu: str) -> int:
        """Return how many ranked jobs of people are unfinished."""

    async def begin(self, final: FinalId, entries: tuple[SubmissionId, ...]) -> None:
        """Start it: store the entries that it compares."""

    async def comparisons(self, final: FinalId) -> tuple[Confirmation, ...]:
        """Return its comparisons, oldest first."""

    async def rescore(self, score: Score) -> None:
        """Replace the value of a score."""

    async def end(self, final: FinalId, rows: tuple[FinalRow, ...]) -> None:
        """Store the table with which it ends."""

    async def cancel(self, final: FinalId) -> tuple[SubmissionId, ...]:
        """Delete a running final with its comparisons; return the runs that have to be stopped."""
