"""Deletes a board with everything of it, after its sources were handed out."""

import io
import zipfile
from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError, board_moved
from bot.ports import Store
from bot.services.audit import audited
from bot.services.lookup import own_board

_PER_ENTRY = 1024
"""More bytes than an entry of a zip takes beside its content, its name twice included."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A board that is to go; `typed` is its name, written once more by the person."""

    name: str
    typed: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Keepsake:
    """A board's task versions and every source as zips, and how many submissions they hold."""

    board: Board
    zips: tuple[bytes, ...]
    submissions: int


async def keepsake(store: Store, viewer: Viewer, deletion: Deletion, *, zip_bytes: int) -> Keepsake:
    """What must reach the person before the board may go; UserError unless the name was typed.

    No zip is larger than `zip_bytes`, which is more than any single file needs.
    """
    board = await own_board(store, viewer, deletion.name)
    if deletion.typed != board.name:
        raise UserError("name-differs", f"you wrote {deletion.typed!r}; nothing was deleted")
    parts = _Parts(zip_bytes)
    for version in await store.boards.versions(board.id):
        for name, text in version.definition.files.items():
            parts.add(f"task/{version.number}/{name}", text)
    submitted = await store.submissions.to(board.id)
    for each in submitted:
        source = await store.submissions.source(each.id)
        parts.add(f"submissions/{each.id}-{each.file_name}", source)
    return Keepsake(board, parts.close(), len(submitted))


async def delete_board(store: Store, viewer: Viewer, deletion: Deletion, kept: Keepsake) -> None:
    """Delete the board; UserError when there is something of it that the keepsake lacks."""
    board = await own_board(store, viewer, deletion.name)
    if (board.id, board.task_version) != (kept.board.id, kept.board.task_version):
        raise board_moved(board.name)
    subject = f"board {board.name}"
    async with audited(store, viewer.person, "delete-board", subject, reason=deletion.reason) as tx:
        await tx.boards.delete(board.id, kept.submissions)


class _Parts:
    """Files as zips of a limited size, each filled before the next is begun."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._done: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._buffer = io.BytesIO()
        self._zip = zipfile.ZipFile(self._buffer, "w", zipfile.ZIP_DEFLATED)

    def add(self, name: str, text: str) -> None:
        """Into the present zip, or into a new one when it might grow too large."""
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
        """All the zips."""
        self._end()
        return tuple(self._done)
