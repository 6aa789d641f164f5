"""The report of GPU time and costs for admins, narrow enough for a phone."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from bot.domain.costs import CostReport, Prices, Usage, UsageKind, cost, show_cost, show_seconds
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone

LONGEST_NAME = 14
"""The most characters of a name that leave room for time and cost in 38 columns."""
_MOST = 10
"""The most lines in a table."""
_COLUMNS = (Column("time", numeric=True), Column("cost", numeric=True))
_UNCOUNTED = {
    UsageKind.REJUDGE: "(rejudged)",
    UsageKind.REFERENCE: "(references)",
    UsageKind.CONFIRMATION: "(comparisons)",
    UsageKind.FAULT: "(own faults)",
}
_PERIODS = {1: "today"}

Key = Callable[[Usage], tuple[str, object]]
"""Returns the name of a row, and what distinguishes it from others of the same name."""


def costs_report(found: CostReport, longest_name: int | None = None) -> Report:
    """Return who used how much, the most expensive first; names are cut after `longest_name`."""
    title = f"GPU costs, {_PERIODS.get(found.days, f'last {found.days} days')} (UTC)"
    if not found.usage:
        return Report(title, (Text("no GPU time was used", Tone.QUIET),))
    blocks: list[Block] = [*_totals(found)]
    for name, key in (("person", _person), ("board", _board), ("GPU type", _gpu)):
        blocks.append(_table(name, _sums(found, key), longest_name))
    days = sorted(_sums(found, lambda each: (f"{each.day}", each.day)), reverse=True)
    blocks.append(_rows("by day", "day", days[: found.days]))
    return Report(title, tuple(blocks))


def _totals(found: CostReport) -> Iterable[Text]:
    counted = [each for each in found.usage if each.kind.counts]
    yield Text(f"In all: {_amount(found.usage, found.prices)}.")
    if len(counted) < len(found.usage):
        rest = [each for each in found.usage if not each.kind.counts]
        words = f"Of this, {_amount(rest, found.prices)} count for no quota: the lines in brackets."
        yield Text(words, Tone.QUIET)


def _amount(usage: Iterable[Usage], prices: Prices) -> str:
    usage = tuple(usage)
    seconds, money = sum(each.seconds for each in usage), _money(usage, prices)
    return show_seconds(seconds) + ("" if money is None else f", {show_cost(money)}")


def _money(usage: Iterable[Usage], prices: Prices) -> float | None:
    """Return the cost; None if no GPU type among them has a price."""
    known = [value for each in usage if (value := cost(prices, each.gpu, each.seconds)) is not None]
    return sum(known) if known else None


Sum = tuple[str, float, float | None]
"""A name, seconds, and dollars."""


def _sums(found: CostReport, key: Key) -> list[Sum]:
    groups: dict[tuple[str, object], list[Usage]] = defaultdict(list)
    for each in found.usage:
        groups[key(each)].append(each)
    return [
        (name, sum(each.seconds for each in group), _money(group, found.prices))
        for (name, _), group in groups.items()
    ]


def _table(name: str, sums: list[Sum], longest: int | None) -> Table:
    most = sorted(sums, key=lambda row: (-(row[2] or 0.0), -row[1], row[0]))
    shown = [(_cut(who, longest), seconds, money) for who, seconds, money in most[:_MOST]]
    more = f", the first {_MOST} of {len(most)}" if len(most) > _MOST else ""
    return _rows(f"by {name}{more}", name, shown)


def _rows(title: str, name: str, sums: Iterable[Sum]) -> Table:
    rows = tuple((who, show_seconds(seconds), show_cost(money)) for who, seconds, money in sums)
    return Table(title, (Column(name), *_COLUMNS), rows)


def _cut(name: str, longest: int | None) -> str:
    if longest is None or len(name) <= longest:
        return name
    return f"{name[: longest - 1]}…"


def _person(each: Usage) -> tuple[str, object]:
    if each.kind.counts:
        return each.person, each.person_id
    return _UNCOUNTED[each.kind], None


def _board(each: Usage) -> tuple[str, object]:
    return each.board or "(checks)", None


def _gpu(each: Usage) -> tuple[str, object]:
    return each.gpu, None
