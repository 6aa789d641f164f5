"""Lists boards, invites people to them, exports and deletes them."""

import io
import zipfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.domain.accounts import DEMO, Person
from bot.domain.board import Board, SourceVisibility, Viewer
from bot.domain.errors import UserError, board_moved
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId
from bot.domain.leaderboard import BoardOverview
from bot.domain.records import BoardExport, ExportedSubmission, JobResult, StoredEvaluation
from bot.domain.scoring import Score, ScoreValue
from bot.domain.status import without_quotes
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.audit import audited
from bot.services.lookup import find_board, own_board, visible_boards


async def list_boards(
    store: Store, viewer: Viewer, *, after: str = "", limit: int | None = None
) -> tuple[BoardOverview, ...]:
    """Return at most `limit` boards that the viewer may see, by name, after the name `after`."""
    visible = [each for each in await visible_boards(store, viewer) if each.name > after]
    return await _overviews(store, visible[:limit])


async def board(store: Store, viewer: Viewer, name: str) -> BoardOverview:
    """Return the board of this name; UserError `unknown-board`."""
    (overview,) = await _overviews(store, [await find_board(store, viewer, name)])
    return overview


async def _overviews(store: Store, boards: Sequence[Board]) -> tuple[BoardOverview, ...]:
    participants = await store.statistics.participants()
    keys = [(each.task_version, gpu) for each in boards for gpu in each.gpus]
    best: dict[tuple[TaskVersionId, str], Score] = {
        (score.task_version, score.gpu): score for score in await store.results.fastest(keys)
    }
    return tuple(
        BoardOverview(
            each,
            participants.get(each.id, 0),
            tuple(
                best[each.task_version, gpu]
                for gpu in each.gpus
                if (each.task_version, gpu) in best
            ),
        )
        for each in boards
    )


_ENTRY_OVERHEAD = 1024
"""The most bytes that an entry adds to a zip in addition to its content; it has its name twice."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A board to delete; `typed` is its name, typed again by the person."""

    name: str
    typed: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BoardArchive:
    """Zips with a board's task versions and sources; `submissions` is how many the board has."""

    board: Board
    zips: tuple[bytes, ...]
    submissions: int

    @property
    def state(self) -> str:
        """Return a text that changes whenever the board does."""
        return f"{self.board.id}-{self.board.task_version}-{self.submissions}"


async def board_archive(
    store: Store, viewer: Viewer, deletion: Deletion, *, zip_bytes: int
) -> BoardArchive:
    """Return what the person must receive before the deletion; UserError unless the name was typed.

    Other people's sources that only their submitters and admins may read go only to admins. No zip
    is larger than `zip_bytes`, which must exceed the size of every single file.
    """
    board = await own_board(store, viewer, deletion.name)
    if deletion.typed != board.name:
        raise UserError(
            "name-differs",
            f"you typed {deletion.typed!r}, which is not the leaderboard's name; nothing was "
            "deleted",
        )
    parts = ZipParts(zip_bytes)
    for version in await store.boards.versions(board.id):
        for name, text in version.definition.files.items():
            parts.add(f"task/{version.number}/{name}", text)
    submitted = await store.submissions.to(board.id)
    for each in submitted:
        private = each.consent is SourceVisibility.NEVER and each.person != viewer.person
        if private and not viewer.sees_all:
            continue
        source = await store.submissions.source(each.id)
        parts.add(f"submissions/{each.id}-{each.file_name}", source)
    return BoardArchive(board, parts.close(), len(submitted))


async def delete_board(
    store: Store, viewer: Viewer, deletion: Deletion, archive: BoardArchive
) -> None:
    """Delete the board; UserError when the archive is older than the board."""
    board = await own_board(store, viewer, deletion.name)
    if (board.id, board.task_version) != (archive.board.id, archive.board.task_version):
        raise board_moved(board.name)
    subject = f"board {board.name}"
    async with audited(store, viewer.person, "delete-board", subject, reason=deletion.reason) as tx:
        await tx.boards.delete(board.id, archive.submissions)


class ZipParts:
    """Files as zips of a limited size; a zip is filled before the next one begins."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._done: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._buffer = io.BytesIO()
        self._zip = zipfile.ZipFile(self._buffer, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, text: str) -> None:
        """Add a file to the current zip, or to a new one when it might become too large."""
        data = text.encode(errors="surrogatepass")
        entries = len(self._zip.infolist())
        size = self._buffer.tell() + (entries + 1) * _ENTRY_OVERHEAD + len(data)
        if entries and size > self._max_bytes:
            self._end()
            self._begin()
        self._zip.writestr(name, data)

    def _end(self) -> None:
        self._zip.close()
        self._done.append(self._buffer.getvalue())

    def close(self) -> tuple[bytes, ...]:
        """Return all the zips."""
        self._end()
        return tuple(self._done)


@dataclass(frozen=True, slots=True)
class Invitation:
    """A board, and people and roles to invite or uninvite, as `discord:17` and `discord-role:5`."""

    board: str
    guests: frozenset[str]


async def invite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Invite people and roles; on a public board, this matters only once it becomes private."""
    board = await _invitation_board(store, viewer, invitation)
    async with _audited(store, viewer, "invite", invitation) as tx:
        return await tx.boards.invite(board.id, invitation.guests)


async def uninvite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """End invitations; these people no longer see the board, only their own submissions to it."""
    board = await _invitation_board(store, viewer, invitation)
    if invitation.guests.isdisjoint(board.access.guests):
        raise UserError("not-invited", "none of these accounts and roles was invited")
    async with _audited(store, viewer, "uninvite", invitation) as tx:
        return await tx.boards.uninvite(board.id, invitation.guests)


async def _invitation_board(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    board = await own_board(store, viewer, invitation.board)
    if not invitation.guests:
        raise UserError("nobody", "name at least one person or role")
    return board


def _audited(
    store: Store, viewer: Viewer, action: str, invitation: Invitation
) -> AbstractAsyncContextManager[Store]:
    whom = ", ".join(sorted(invitation.guests))
    return audited(store, viewer.person, action, f"board {invitation.board}", reason=whom)


async def export_board(store: Store, viewer: Viewer, board_name: str) -> BoardExport:
    """Return all submissions to a board with their results; record who exported them."""
    board = await find_board(store, viewer, board_name)
    submissions = await store.submissions.to(board.id)
    versions = {each.id: each.number for each in await store.boards.versions(board.id)}
    people = await _people_by_id(store, {each.person for each in submissions})
    counting = await _counting_scores(store, submissions)
    references = await _reference_times(store, submissions)
    outcomes: dict[SubmissionId, list[JobResult]] = {each.id: [] for each in submissions}
    for outcome in await store.results.outcomes([each.id for each in submissions]):
        outcomes[outcome.submission].append(outcome)
    rows = tuple(
        ExportedSubmission(
            submission=each,
            person=people[each.person],
            version=versions[each.task_version],
            outcomes=tuple(outcomes[each.id]),
            ranked_on=frozenset(gpu for gpu in each.gpus if (each.id, gpu) in counting),
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


async def exported_evaluations(
    store: Store, export: BoardExport
) -> AsyncGenerator[tuple[ExportedSubmission, tuple[StoredEvaluation, ...]], None]:
    """Yield each submission with its measurements, one at a time to limit memory."""
    for each in export.submissions:
        stored = await store.results.evaluations(each.submission.id)
        if each.submission.consent is SourceVisibility.NEVER:
            stored = tuple(
                replace(one, evaluation=without_quotes(one.evaluation)) for one in stored
            )
        yield each, stored


async def exported_sources(
    store: Store, export: BoardExport
) -> AsyncGenerator[tuple[str, str], None]:
    """Yield each submitted source once, with the hash by which submissions refer to it.

    Leaves out sources that only their submitters and admins may read.
    """
    first = {
        each.submission.source_hash: each.submission.id
        for each in export.submissions
        if each.submission.consent is not SourceVisibility.NEVER
    }
    for digest, submission in sorted(first.items()):
        yield digest, await store.submissions.source(submission)


async def _people_by_id(store: Store, ids: set[PersonId]) -> dict[PersonId, Person]:
    people = [await store.people.get(each) for each in sorted(ids)]
    return {each.id: each for each in people if each is not None}


async def _counting_scores(
    store: Store, submissions: tuple[Submission, ...]
) -> set[tuple[SubmissionId, str]]:
    """Return submission and GPU type of each score that counts in the standings."""
    return {
        (score.submission, gpu)
        for version, gpu in _leaderboards(submissions)
        for score in await store.results.scores(version, gpu)
    }


async def _reference_times(
    store: Store, submissions: tuple[Submission, ...]
) -> dict[tuple[TaskVersionId, str], ScoreValue]:
    """Return the known reference times of every leaderboard with submissions."""
    references = {each: await store.references.of(*each) for each in _leaderboards(submissions)}
    return {
        each: reference.value
        for each, reference in references.items()
        if reference is not None and reference.value is not None
    }


def _leaderboards(submissions: tuple[Submission, ...]) -> list[tuple[TaskVersionId, str]]:
    return sorted({(each.task_version, gpu) for each in submissions for gpu in each.gpus})


_OWNER = f"{DEMO}:podium"
_ANY_AGE = timedelta(seconds=-1)
"""An age limit below zero: it includes requests that end at this very moment."""


@dataclass(frozen=True, slots=True)
class DemoRemoval:
    """The boards that were deleted, and those kept because other people have submitted to them."""

    boards: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


async def demo_owner(store: Store) -> Person:
    """Return the owner of the demo's boards, created if new."""
    return await store.people.ensure(_OWNER, "podium demo")


async def remove_demo(store: Store) -> DemoRemoval:
    """Delete the demo's boards; of a board that other people use, delete only the demo's kernels.

    UserError `moved` when a person submits to one of them meanwhile; that board is not deleted.
    """
    owner = await store.people.find(_OWNER)
    if owner is None:
        return DemoRemoval()
    boards = [each for each in await store.boards.all() if each.creator == owner.id]
    deleted = {board.name: await _remove_demo_board(store, board, owner) for board in boards}
    return DemoRemoval(
        tuple(name for name, whole in deleted.items() if whole),
        tuple(name for name, whole in deleted.items() if not whole),
    )


async def _remove_demo_board(store: Store, board: Board, owner: Person) -> bool:
    """Return True when the board was deleted, False when only the demo's kernels were."""
    submitted = await store.submissions.to(board.id)
    demo_people = await _demo_people(store, {each.person for each in submitted})
    if all(each.person in demo_people for each in submitted):
        subject, reason = f"board {board.name}", "the demo's own"
        async with audited(store, owner.id, "delete-board", subject, reason=reason) as tx:
            await tx.boards.delete(board.id, len(submitted))
        return True
    for each in submitted:
        if each.person in demo_people:
            await store.jobs.request_cancel(each.id)
    for person in demo_people:
        await store.requests.delete_ended(board.id, _ANY_AGE, person)
    return False


async def _demo_people(store: Store, people: set[PersonId]) -> frozenset[PersonId]:
    members = [await store.people.get(each) for each in people]
    demo = (each for each in members if each is not None and each.identity.startswith(f"{DEMO}:"))
    return frozenset(each.id for each in demo)
