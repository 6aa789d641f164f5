"""Tells what place a finished ranked submission has won on each GPU type."""

from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import Leaderboard, Placement
from bot.domain.score import ScoreValue
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.leaderboards import leaderboard
from bot.services.lookup import find_submission


async def placements(store: Store, submission_id: SubmissionId) -> tuple[Placement, ...]:
    """By GPU type, for those on which the submission has a score that counts."""
    submission = await find_submission(store, submission_id)
    if await store.moderation.exclusion_of(submission_id) is not None:
        return ()
    found = []
    for outcome in await store.results.outcomes((submission_id,)):
        if outcome.score is not None:
            board = await leaderboard(store, submission.task_version, outcome.gpu, newest=True)
            found.append(_placement(submission, outcome.gpu, outcome.score, board))
    return tuple(each for each in found if each is not None)


def _placement(
    submission: Submission, gpu: str, value: ScoreValue, board: Leaderboard
) -> Placement | None:
    """None where the score was taken off the board at this very moment."""
    of_person = (each for each in board.entries if each.score.person == submission.person)
    standing = next(of_person, None)
    if standing is None:
        return None
    is_best = standing.score.submission == submission.id
    return Placement(
        gpu=gpu,
        value=value,
        rank=standing.rank,
        shared=sum(each.rank == standing.rank for each in board.entries) > 1,
        entries=len(board.entries),
        is_best=is_best,
        improved=is_best and standing.attempts > 1,
        reference=None if board.reference is None else board.reference.value,
    )
