"""Deletes a board with everything of it, after handing its sources out."""

import io
import zipfile
from dataclasses import dataclass

from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.ports import Store
from bot.services.lookup import find_board
from bot.services.moderate import Deed


@dataclass(frozen=True, slots=True)
class Deletion:
    """A board that is to go; `typed` is its name, written once more by the person."""

    name: str
    typed: str
    as_admin: bool = False


async def deletable(store: Store, deed: Deed, name: str, *, as_admin: bool) -> Board:
    """The board; UserError when the person may not delete it."""
    board = await find_board(store, name)
    if board.creator != deed.actor and not as_admin:
        raise UserError("not-yours", f"leaderboard {name!r} belongs to somebody else")
    return board


async def delete_board(store: Store, deed: Deed, deletion: Deletion) -> bytes:
    """Delete the board; gives a zip of the task and of every source that was submitted to it."""
    board = await deletable(store, deed, deletion.name, as_admin=deletion.as_admin)
    if deletion.typed != board.name:
        raise UserError("name-differs", f"you wrote {deletion.typed!r}; nothing was deleted")
    kept = await _export(store, board)
    await store.boards.delete(board.id)
    await store.audit.record(deed.actor, "delete-board", f"board {board.name}", deed.reason)
    return kept


async def _export(store: Store, board: Board) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for version in await store.boards.versions(board.id):
            for name, text in version.definition.files.items():
                zipped.writestr(f"task/{version.number}/{name}", text)
        for number, file_name in await _submitted(store, board):
            zipped.writestr(
                f"submissions/{number}-{file_name}", await store.submissions.source(number)
            )
    return archive.getvalue()


async def _submitted(store: Store, board: Board) -> tuple[tuple[SubmissionId, str], ...]:
    return tuple((each.id, each.file_name) for each in await store.submissions.to(board.id))
