"""Deletes a board with everything of it, after handing its sources out."""

import io
import zipfile
from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.ports import Store
from bot.services.lookup import own_board


@dataclass(frozen=True, slots=True)
class Deletion:
    """A board that is to go; `typed` is its name, written once more by the person."""

    name: str
    typed: str
    reason: str = ""


async def delete_board(store: Store, viewer: Viewer, deletion: Deletion) -> bytes:
    """Delete the board; gives a zip of the task and of every source that was submitted to it."""
    board = await own_board(store, viewer, deletion.name)
    if deletion.typed != board.name:
        raise UserError("name-differs", f"you wrote {deletion.typed!r}; nothing was deleted")
    kept = await _export(store, board)
    await store.boards.delete(board.id)
    await store.audit.record(viewer.person, "delete-board", f"board {board.name}", deletion.reason)
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
