"""Exports everything that was submitted to a board, with its results."""

from collections.abc import AsyncGenerator

from bot.domain.accounts import Person
from bot.domain.board import Viewer
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId
from bot.domain.records import BoardExport, ExportedSubmission, JobResult, StoredEvaluation
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.lookup import find_board


async def export_board(store: Store, viewer: Viewer, board_name: str) -> BoardExport:
    """Return everything of a board; record who asked."""
    board = await find_board(store, viewer, board_name)
    submissions = await store.submissions.to(board.id)
    versions = {each.id: each.number for each in await store.boards.versions(board.id)}
    people = await _people(store, {each.person for each in submissions})
    counted = await _counted(store, submissions)
    references = await _references(store, submissions)
    outcomes: dict[SubmissionId, list[JobResult]] = {each.id: [] for each in submissions}
    for outcome in await store.results.outcomes([each.id for each in submissions]):
        outcomes[outcome.submission].append(outcome)
    rows = tuple(
        ExportedSubmission(
            submission=each,
            person=people[each.person],
            version=versions[each.task_version],
            outcomes=tuple(outcomes[each.id]),
            ranked_on=frozenset(gpu for gpu in each.gpus if (each.id, gpu) in counted),
            references={
                gpu: references[each.task_version, gpu]
                for gpu in each.gpus
                if (each.task_version, gpu) in references
            },
        )
        for each in submissions
    )
    await store.audit.record(viewer.person, "export", f"board {board.name}", "")
    return BoardExport(board, rows)


async def evaluations(
    store: Store, found: BoardExport
) -> AsyncGenerator[tuple[ExportedSubmission, tuple[StoredEvaluation, ...]], None]:
    """Yield each submission with its measurements, one at a time to limit memory."""
    for each in found.submissions:
        yield each, await store.results.evaluations(each.submission.id)


async def sources(store: Store, found: BoardExport) -> AsyncGenerator[tuple[str, str], None]:
    """Yield each submitted source once, with the hash by which submissions refer to it."""
    first = {each.submission.source_hash: each.submission.id for each in found.submissions}
    for digest, submission in sorted(first.items()):
        yield digest, await store.submissions.source(submission)


async def _people(store: Store, wanted: set[PersonId]) -> dict[PersonId, Person]:
    found = [await store.people.get(each) for each in sorted(wanted)]
    return {each.id: each for each in found if each is not None}


async def _counted(
    store: Store, submissions: tuple[Submission, ...]
) -> set[tuple[SubmissionId, str]]:
    """Return submission and GPU type of each score that counts in the standings."""
    return {
        (score.submission, gpu)
        for version, gpu in _leaderboards(submissions)
        for score in await store.results.scores(version, gpu)
    }


async def _references(
    store: Store, submissions: tuple[Submission, ...]
) -> dict[tuple[TaskVersionId, str], ScoreValue]:
    """Return the known reference times of every leaderboard with submissions."""
    found = {each: await store.references.of(*each) for each in _leaderboards(submissions)}
    return {
        each: reference.value
        for each, reference in found.items()
        if reference is not None and reference.value is not None
    }


def _leaderboards(submissions: tuple[Submission, ...]) -> list[tuple[TaskVersionId, str]]:
    return sorted({(each.task_version, gpu) for each in submissions for gpu in each.gpus})
