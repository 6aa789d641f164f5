"""Lists boards, invites guests and deletes boards."""

import io
import zipfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError, board_moved
from bot.domain.ids import TaskVersionId
from bot.domain.leaderboard import BoardOverview
from bot.domain.scoring import Score
from bot.ports import Store
from bot.services.audit import audited
from bot.services.lookup import find_board, own_board, visible_boards


async def list_boards(
    store: Store, viewer: Viewer, *, after: str = "", limit: int | None = None
) -> tuple[BoardOverview, ...]:
    """Return the boards that the viewer may see, by name: at most `limit`, after the given name."""
    visible = [each for each in await visible_boards(store, viewer) if each.name > after]
    return await _overviews(store, visible[:limit])


async def board(store: Store, viewer: Viewer, name: str) -> BoardOverview:
    """Return the board of this name; UserError `unknown-board`."""
    (found,) = await _overviews(store, [await find_board(store, viewer, name)])
    return found


async def _overviews(store: Store, found: Sequence[Board]) -> tuple[BoardOverview, ...]:
    participants = await store.statistics.participants()
    keys = [(each.task_version, gpu) for each in found for gpu in each.gpus]
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
        for each in found
    )


_PER_ENTRY = 1024
"""An upper bound for an entry's bytes in a zip besides its content; its name is in it twice."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A board to delete; `typed` is its name, typed again by the person."""

    name: str
    typed: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BoardArchive:
    """A board's task versions and all sources as zips, and how many submissions they hold."""

    board: Board
    zips: tuple[bytes, ...]
    submissions: int


async def board_archive(
    store: Store, viewer: Viewer, deletion: Deletion, *, zip_bytes: int
) -> BoardArchive:
    """Return what the person must receive before the deletion; UserError unless the name was typed.

    No zip is larger than `zip_bytes`, which is more than any single file needs.
    """
    board = await own_board(store, viewer, deletion.name)
    if deletion.typed != board.name:
        raise UserError(
            "name-differs",
            f"you typed {deletion.typed!r}, which is not the leaderboard's name; nothing was "
            "deleted",
        )
    parts = _Parts(zip_bytes)
    for version in await store.boards.versions(board.id):
        for name, text in version.definition.files.items():
            parts.add(f"task/{version.number}/{name}", text)
    submitted = await store.submissions.to(board.id)
    for each in submitted:
        source = await store.submissions.source(each.id)
        parts.add(f"submissions/{each.id}-{each.file_name}", source)
    return BoardArchive(board, parts.close(), len(submitted))


async def delete_board(
    store: Store, viewer: Viewer, deletion: Deletion, kept: BoardArchive
) -> None:
    """Delete the board; UserError when it has something that the board archive lacks."""
    board = await own_board(store, viewer, deletion.name)
    if (board.id, board.task_version) != (kept.board.id, kept.board.task_version):
        raise board_moved(board.name)
    subject = f"board {board.name}"
    async with audited(store, viewer.person, "delete-board", subject, reason=deletion.reason) as tx:
        await tx.boards.delete(board.id, kept.submissions)


class _Parts:
    """Files as zips of a limited size; a zip is filled before the next one begins."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._done: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._buffer = io.BytesIO()
        self._zip = zipfile.ZipFile(self._buffer, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, text: str) -> None:
        """Add a file to the current zip, or to a new one when it might become too large."""
        data = text.encode(errors="surrogatepass")
        entries = len(self._zip.infolist())
        size = self._buffer.tell() + (entries + 1) * _PER_ENTRY + len(data)
        if entries and size > self._most:
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
    """The people and roles concerned, such as `discord:17` and `discord-role:5`."""

    board: str
    guests: frozenset[str]


async def invite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Add guests; on a public board they matter only once it becomes private."""
    board = await _board(store, viewer, invitation)
    async with _audited(store, viewer, "invite", invitation) as tx:
        return await tx.boards.invite(board.id, invitation.guests)


async def uninvite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Remove guests; they lose the board at once but keep their own submissions."""
    board = await _board(store, viewer, invitation)
    if invitation.guests.isdisjoint(board.access.guests):
        raise UserError("not-invited", "none of these accounts and roles was invited")
    async with _audited(store, viewer, "uninvite", invitation) as tx:
        return await tx.boards.uninvite(board.id, invitation.guests)


async def _board(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    board = await own_board(store, viewer, invitation.board)
    if not invitation.guests:
        raise UserError("nobody", "give at least one person or role")
    return board


def _audited(
    store: Store, viewer: Viewer, action: str, invitation: Invitation
) -> AbstractAsyncContextManager[Store]:
    whom = ", ".join(sorted(invitation.guests))
    return audited(store, viewer.person, action, f"board {invitation.board}", reason=whom)
