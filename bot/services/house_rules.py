"""Gives everything that keeps submissions out at the moment: limits, pauses, bans."""

from dataclasses import dataclass

from bot.domain.moderation import RateLimit
from bot.domain.person import Person
from bot.ports import Store


@dataclass(frozen=True, slots=True)
class NamedLimit:
    """A limit with the name of its board; None for one that covers every board."""

    limit: RateLimit
    board: str | None


@dataclass(frozen=True, slots=True)
class HouseRules:
    """What holds now; a pause is None while there is none, and has its notice otherwise."""

    limits: tuple[NamedLimit, ...]
    pause: str | None
    boards: dict[str, str]
    """The notice of each paused board, by its name."""
    gpus: dict[str, str]
    """The notice of each paused GPU type."""
    bans: tuple[tuple[Person, str], ...]
    """Who may not submit, and why."""


async def house_rules(store: Store) -> HouseRules:
    """Limits, pauses and bans as they are now."""
    names = {board.id: board.name for board in await store.boards.all()}
    limits = await store.moderation.limits()
    paused = await store.moderation.board_pauses()
    bans = await store.moderation.bans()
    people = [(await store.people.get(who), why) for who, why in bans.items()]
    return HouseRules(
        limits=tuple(
            NamedLimit(each, names.get(each.board) if each.board else None) for each in limits
        ),
        pause=await store.moderation.pause_notice(),
        boards={names[board]: notice for board, notice in paused.items() if board in names},
        gpus=await store.moderation.pool_pauses(),
        bans=tuple((person, why) for person, why in people if person is not None),
    )
