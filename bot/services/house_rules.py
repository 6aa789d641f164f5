"""Gives everything that keeps submissions out at the moment: limits, pauses, bans."""

from bot.domain.records import NamedLimit, SubmissionRules
from bot.ports import Store


async def house_rules(store: Store) -> SubmissionRules:
    """Limits, pauses and bans as they are now."""
    names = {board.id: board.name for board in await store.boards.all()}
    limits = await store.moderation.limits()
    paused = await store.moderation.board_pauses()
    bans = await store.moderation.bans()
    people = [(await store.people.get(who), why) for who, why in bans.items()]
    return SubmissionRules(
        limits=tuple(
            NamedLimit(each, names.get(each.board) if each.board else None) for each in limits
        ),
        pause=await store.moderation.pause_notice(),
        boards={names[board]: notice for board, notice in paused.items() if board in names},
        gpus=await store.moderation.pool_pauses(),
        bans=tuple((person, why) for person, why in people if person is not None),
    )
