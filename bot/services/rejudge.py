"""Judges a submission once more by the present version of its board's task."""

from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId, TaskVersionId
from bot.domain.job import PRIORITIES
from bot.domain.ranking import rank
from bot.domain.submission import NewSubmission, Submission
from bot.ports import Store
from bot.services.lookup import find_submission, is_the_houses
from bot.services.moderate import Deed
from runners.contract.task import Mode


async def rejudge(store: Store, deed: Deed, submission_id: SubmissionId) -> Submission:
    """A new submission of the same source for the same person, whatever the deadline."""
    earlier = await find_submission(store, submission_id)
    if await is_the_houses(store, earlier):
        words = f"submission {submission_id} times a task's reference; nobody is ranked by it"
        raise UserError("not-a-persons", words)
    board = await store.boards.get(earlier.board)
    if board is None:
        raise LookupError(f"board {earlier.board} of submission {submission_id} is not there")
    gpus = tuple(gpu for gpu in earlier.gpus if gpu in board.gpus)
    if not gpus:
        raise UserError("no-gpu", f"the board runs on none of {', '.join(earlier.gpus)} any more")
    again = await store.submissions.add(
        NewSubmission(
            person=earlier.person,
            board=board.id,
            task_version=board.task_version,
            file_name=earlier.file_name,
            source=await store.submissions.source(earlier.id),
            mode=earlier.mode,
            gpus=gpus,
            priority=PRIORITIES[Mode.RANKED],
            judged_again=True,
        )
    )
    subject = f"submission {submission_id} as {again.id}"
    await store.audit.record(deed.actor, "rejudge", subject, deed.reason)
    return again


async def rejudge_standings(store: Store, deed: Deed, board: Board, version: TaskVersionId) -> int:
    """Judge everyone's best submission to an earlier version by the present one; gives how many."""
    best: dict[SubmissionId, None] = {}
    for gpu in board.gpus:
        for standing in rank(await store.results.scores(version, gpu)):
            best[standing.score.submission] = None
    for submission in best:
        await rejudge(store, deed, submission)
    return len(best)
