"""Lets people and roles see a private board, and ends that; each deed leaves an audit row."""

from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.ports import Store
from bot.services.lookup import own_board


@dataclass(frozen=True, slots=True)
class Invitation:
    """Whom it concerns, in doors' own words, such as `discord:17` and `discord-role:5`."""

    board: str
    guests: frozenset[str]


async def invite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Add guests; of a public board they count once it is private."""
    board = await _board(store, viewer, invitation)
    after = await store.boards.invite(board.id, invitation.guests)
    await _record(store, viewer, "invite", invitation)
    return after


async def uninvite(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    """Remove guests; for them the board is gone at once, their own submissions stay theirs."""
    board = await _board(store, viewer, invitation)
    if invitation.guests.isdisjoint(board.access.guests):
        raise UserError("not-invited", "none of these was invited")
    after = await store.boards.uninvite(board.id, invitation.guests)
    await _record(store, viewer, "uninvite", invitation)
    return after


async def _board(store: Store, viewer: Viewer, invitation: Invitation) -> Board:
    board = await own_board(store, viewer, invitation.board)
    if not invitation.guests:
        raise UserError("nobody", "name at least one person or role")
    return board


async def _record(store: Store, viewer: Viewer, action: str, invitation: Invitation) -> None:
    whom = ", ".join(sorted(invitation.guests))
    await store.audit.record(viewer.person, action, f"board {invitation.board}", whom)
