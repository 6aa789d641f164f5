"""Invite links: a person who has one can join a private board."""

import secrets
from dataclasses import replace
from datetime import timedelta

from bot.domain.accounts import digest_of
from bot.domain.board import Board, InviteLink, NewInviteLink, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import InviteLinkId
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.lookup import own_board

MOST_PEOPLE = 1000
"""The most people who can join by one link."""
MOST_DAYS = 90
"""The most days for which a link is valid."""
_MOST_LINKS = 50
"""The most valid links of one board."""
_LONGEST_CODE = 100


async def create_invite_link(
    store: Store, clock: Clock, viewer: Viewer, board_name: str, *, days: int, most: int
) -> tuple[InviteLink, str]:
    """Create a link for the viewer's own board; return it with its code, which is not stored."""
    board = await own_board(store, viewer, board_name)
    if not (1 <= days <= MOST_DAYS and 1 <= most <= MOST_PEOPLE):
        limits = f"1 to {MOST_PEOPLE:,} people and 1 to {MOST_DAYS} days"
        raise UserError("bad-number", f"an invite link is for {limits}")
    code = secrets.token_hex(16)
    until = clock.now() + timedelta(days=days)
    link = NewInviteLink(board.id, viewer.person, digest_of(code), most, until)
    reason = f"for {most} people, until {until:%Y-%m-%d %H:%M} UTC"
    subject = f"board {board.name}"
    async with audited(store, viewer.person, "invite-link", subject, reason=reason) as tx:
        added = await tx.invites.add(link)
        if len(await tx.invites.of(board.id)) > _MOST_LINKS:
            message = f"this board has {_MOST_LINKS} invite links; revoke one first"
            raise UserError("too-many-links", message)
    return added, code


async def revoke_invite_link(store: Store, viewer: Viewer, board_name: str, link: int) -> None:
    """Revoke a link of the viewer's own board; people who joined by it stay invited."""
    board = await own_board(store, viewer, board_name)
    subject = f"board {board.name}"
    async with audited(
        store, viewer.person, "revoke-invite-link", subject, reason=f"link {link}"
    ) as tx:
        if not await tx.invites.revoke(board.id, InviteLinkId(link)):
            raise UserError("unknown-link", "this board has no valid invite link with this number")


async def invited_board(store: Store, code: str) -> Board:
    """Return the board of a code; UserError `bad-code` if it is unknown, revoked or expired."""
    link = await store.invites.find(digest_of(code)) if len(code) <= _LONGEST_CODE else None
    board = None if link is None else await store.boards.get(link.board)
    if board is None:
        raise _bad_code()
    return board


async def join_board(store: Store, viewer: Viewer, code: str) -> Board:
    """Invite the viewer to the code's board; UserError `bad-code` if the code is not valid."""
    person = await store.people.get(viewer.person)
    if person is None:
        raise UserError("unknown-person", "this account was deleted")
    board = await invited_board(store, code)
    guest = frozenset({person.identity})
    joined = replace(board.access, guests=guest)
    if not (viewer.sees_all or joined.admits(viewer.credentials | guest)):
        words = "this board is only for members of its Discord server"
        raise UserError("not-member", f"{words}; become a member, then use the code again")
    subject = f"board {board.name}"
    async with audited(store, viewer.person, "join", subject, reason=person.identity) as tx:
        if await tx.invites.use(digest_of(code), person.identity) is None:
            raise _bad_code()
    return board


def _bad_code() -> UserError:
    words = "this invite code is unknown, revoked, expired or used up"
    return UserError("bad-code", f"{words}; ask for a new one")
