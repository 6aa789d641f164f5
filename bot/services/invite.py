"""Lets people and roles see a private board, and ends that; each change has its audit entry."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.ports import Store
from bot.services.audit import audited
from bot.services.lookup import own_board


@dataclass(frozen=True, slots=True)
class Invitation:
    """Whom it concerns, in doors' own words, such as `discord:17` and `discord-role:5`."""

    board: str
    guests: frozenset[str]


async def invite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Add guests; of a public board they count once it is private."""
    board = await _board(store, viewer, invitation)
    async with _audited(store, viewer, "invite", invitation) as tx:
        return await tx.boards.invite(board.id, invitation.guests)


async def uninvite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Remove guests; for them the board is gone at once, their own submissions stay theirs."""
    board = await _board(store, viewer, invitation)
    if invitation.guests.isdisjoint(board.access.guests):
        raise UserError("not-invited", "none of these was invited")
    async with _audited(store, viewer, "uninvite", invitation) as tx:
        return await tx.boards.uninvite(board.id, invitation.guests)


async def _board(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    board = await own_board(store, viewer, invitation.board)
    if not invitation.guests:
        raise UserError("nobody", "name at least one person or role")
    return board


def _audited(
    store: Store, viewer: Viewer, action: str, invitation: Invitation
) -> AbstractAsyncContextManager[Store]:
    whom = ", ".join(sorted(invitation.guests))
    return audited(store, viewer.person, action, f"board {invitation.board}", reason=whom)
