"""Decides whether a person may submit just now, whatever the submission is."""

from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.moderation import banned
from bot.ports import Clock, Store
from runners.contract.task import Mode


async def admit(store: Store, clock: Clock, person: PersonId, *, board: Board, mode: Mode) -> None:
    """UserError when submissions are paused, the person is banned, or a limit is reached.

    The store asks for bans and limits once more, in the moment in which it takes a submission in;
    here they are told early.
    """
    notice = await store.moderation.pause_notice()
    if notice is not None:
        raise UserError("paused", f"no submissions are taken at the moment: {notice}")
    notice = (await store.moderation.board_pauses()).get(board.id)
    if notice is not None:
        raise UserError("paused", f"leaderboard {board.name!r} takes none at the moment: {notice}")
    reason = await store.moderation.ban_of(person)
    if reason is not None:
        raise banned(reason)
    now = clock.now()
    reached = await store.moderation.limited_by(person, board.id, mode, now)
    if reached is not None:
        limit, counted = reached
        raise limit.refusal(counted, now)
