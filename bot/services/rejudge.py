"""Judges a submission again by the current version of its board's task."""

from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId, is_system_submission
from bot.domain.job import PRIORITIES
from bot.domain.scoring import rank_entrants
from bot.domain.submission import NewSubmission, Submission, SubmissionState
from bot.ports import Store
from bot.services.lookup import find_submission, own_board
from bot.services.moderation import Decision
from runners.contract.task import Mode


async def rejudge_submission(
    store: Store, deed: Decision, submission_id: SubmissionId
) -> Submission:
    """Return a new submission of the same source for the same person, even after the deadline."""
    earlier = await find_submission(store, submission_id)
    if is_system_submission(submission_id):
        words = f"submission {submission_id} times a task's reference and is never ranked"
        raise UserError("not-a-persons", words)
    board = await store.boards.get(earlier.board)
    if board is None:
        raise LookupError(f"board {earlier.board} of submission {submission_id} is not there")
    gpus = tuple(gpu for gpu in earlier.gpus if gpu in board.gpus)
    if not gpus:
        raise UserError(
            "no-gpu-left", f"the leaderboard no longer runs on {', '.join(earlier.gpus)}"
        )
    new = NewSubmission(
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
    async with store.transaction() as tx:
        again = await tx.submissions.add(new)
        subject = f"submission {submission_id} as {again.id}"
        await tx.audit.record(deed.actor, "rejudge", subject, deed.reason)
    return again


async def rejudge_standings(
    store: Store, deed: Decision, board: Board, version: TaskVersionId
) -> int:
    """Judge everyone's best submission to an earlier version by the current one; return how many.

    Sources that the current version has judged, or is going to judge, are skipped.
    """
    there = {
        key
        for each in await store.submissions.to(board.id)
        if each.task_version == board.task_version and _counts(each)
        for key in _runs(each)
    }
    wanted = await best_of(store, board, version)
    found = [each for each in wanted if _runs(each, board.gpus) - there]
    for submission in found:
        await rejudge_submission(store, deed, submission.id)
    return len(found)


async def rejudge_from(store: Store, viewer: Viewer, board: Board, number: int) -> tuple[int, int]:
    """Judge everyone's best submission to the version of this number by the current one.

    Return how many are judged, and the current version's number. UserError when the viewer may not
    change the board, or when there is nothing to judge.
    """
    await own_board(store, viewer, board.name)
    versions = await store.boards.versions(board.id)
    earlier = next((each for each in versions if each.number == number), None)
    if earlier is None or earlier.id == board.task_version:
        raise UserError(
            "no-version", f"the leaderboard now uses task version {number}; run the command again"
        )
    present = next(each.number for each in versions if each.id == board.task_version)
    deed = Decision(viewer.person, f"task version {present}")
    count = await rejudge_standings(store, deed, board, earlier.id)
    if not count:
        raise UserError(
            "judged", "every best submission already uses this task version; nothing to rejudge"
        )
    return count, present


async def best_of(store: Store, board: Board, version: TaskVersionId) -> tuple[Submission, ...]:
    """Return everyone's best submissions to a task version on each GPU type, without repeats."""
    best: dict[SubmissionId, Submission] = {}
    for gpu in board.gpus:
        for standing in rank_entrants(await store.results.entrants(version, gpu)):
            number = standing.score.submission
            best[number] = await find_submission(store, number)
    return tuple(best.values())


def _counts(submission: Submission) -> bool:
    """Return whether it was or still may be ranked; failed and cancelled ones do not count."""
    ended_badly = submission.state in {SubmissionState.FAILED, SubmissionState.CANCELLED}
    return submission.mode is Mode.RANKED and not ended_badly


def _runs(
    submission: Submission, gpus: tuple[str, ...] | None = None
) -> set[tuple[PersonId, str, str]]:
    """Return person, source and GPU type of each run, limited to the given GPU types."""
    person, source = submission.person, submission.source_hash
    return {(person, source, gpu) for gpu in submission.gpus if gpus is None or gpu in gpus}
