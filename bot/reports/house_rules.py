"""The report of everything that keeps submissions out at the moment."""

from bot.domain.moderation import span
from bot.domain.records import NamedLimit, SubmissionRules
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone

_LIMITS = (Column("board"), Column("mode"), Column("most", numeric=True), Column("in"))
_PAUSES = (Column("paused"), Column("why"))
_BANS = (Column("who"), Column("account"), Column("why"))


def house_rules_report(rules: SubmissionRules) -> Report:
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


def _pauses(rules: SubmissionRules) -> tuple[tuple[str, str], ...]:
    whole = () if rules.pause is None else (("all submissions", rules.pause),)
    boards = ((f"board {name}", why) for name, why in sorted(rules.boards.items()))
    gpus = ((f"GPU type {name}", why) for name, why in sorted(rules.gpus.items()))
    return *whole, *boards, *gpus
