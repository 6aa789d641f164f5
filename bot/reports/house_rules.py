"""The report of everything that keeps submissions out at the moment."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from bot.domain.moderation import RateLimit, span
from bot.domain.person import Person
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone


class NamedLimit(Protocol):
    """A limit with the name of its board, as the service gives it."""

    @property
    def limit(self) -> RateLimit: ...
    @property
    def board(self) -> str | None: ...


class HouseRules(Protocol):
    """What holds now, as the service gives it."""

    @property
    def limits(self) -> Sequence[NamedLimit]: ...
    @property
    def pause(self) -> str | None: ...
    @property
    def boards(self) -> Mapping[str, str]: ...
    @property
    def gpus(self) -> Mapping[str, str]: ...
    @property
    def bans(self) -> Sequence[tuple[Person, str]]: ...


_LIMITS = (Column("board"), Column("mode"), Column("most", numeric=True), Column("in"))
_PAUSES = (Column("paused"), Column("why"))
_BANS = (Column("who"), Column("account"), Column("why"))


def house_rules_report(rules: HouseRules) -> Report:
    """A table each for limits, pauses and bans, where there are any."""
    blocks: list[Block] = []
    if rules.limits:
        blocks.append(Table("limits of each person", _LIMITS, tuple(map(_row, rules.limits))))
    pauses = _pauses(rules)
    if pauses:
        blocks.append(Table("pauses", _PAUSES, pauses))
    if rules.bans:
        rows = tuple((person.name, person.identity, why) for person, why in rules.bans)
        blocks.append(Table("bans", _BANS, rows))
    nothing = Text("There is no limit, no pause and no ban.", Tone.QUIET)
    return Report("What keeps submissions out", tuple(blocks) or (nothing,))


def _row(each: NamedLimit) -> tuple[str, ...]:
    limit = each.limit
    mode = limit.mode or "every mode"
    return each.board or "every board", mode, str(limit.most), span(limit.window)


def _pauses(rules: HouseRules) -> tuple[tuple[str, str], ...]:
    whole = () if rules.pause is None else (("all submissions", rules.pause),)
    boards = ((f"board {name}", why) for name, why in sorted(rules.boards.items()))
    gpus = ((f"GPU type {name}", why) for name, why in sorted(rules.gpus.items()))
    return *whole, *boards, *gpus
