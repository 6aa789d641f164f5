"""The report of what goes on in an installation."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from bot.domain.durations import show_span
from bot.domain.prices import Prices, cost, show_cost
from bot.domain.records import InstallationStats, Usage
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone
from bot.reports.submission import VERDICT_WORDS

_QUEUE = (Column("GPU"), Column("queued", numeric=True), Column("running", numeric=True))
_DAYS = (Column("day (UTC)"), Column("submissions", numeric=True), Column("people", numeric=True))
_VERDICTS = (Column("verdict"), Column("evaluations", numeric=True))
_TIMES = (Column("GPU"), Column("evaluations", numeric=True), Column("time", numeric=True))
_COST = (Column("cost", numeric=True),)
_MOST = 10
"""Lines of a table of who used the GPUs."""


def stats_report(stats: InstallationStats) -> Report:
    """The queue first, for that is what one looks for in a hurry."""
    counts = Text(f"{stats.people} accounts, {stats.boards} boards")
    return Report("Statistics", (counts, *_queue(stats), *_season(stats)))


def _queue(stats: InstallationStats) -> Iterator[Block]:
    if not stats.backlog:
        yield Text("nothing waits and nothing runs", Tone.QUIET)
        return
    rows = tuple(
        (gpu, str(counts.get("queued", 0)), str(counts.get("running", 0)))
        for gpu, counts in sorted(stats.backlog.items())
    )
    yield Table("queue", _QUEUE, rows)


def _season(stats: InstallationStats) -> Iterator[Block]:
    if not stats.days:
        yield Text("nothing was submitted in the last two weeks", Tone.QUIET)
        return
    days = tuple((f"{each.day}", str(each.submissions), str(each.people)) for each in stats.days)
    yield Table("the last two weeks", _DAYS, days)
    total = sum(stats.verdicts.values())
    most_first = sorted(stats.verdicts.items(), key=lambda item: -item[1])
    yield Table(
        "verdicts",
        _VERDICTS,
        tuple((VERDICT_WORDS[verdict], _part(count, total)) for verdict, count in most_first),
    )
    yield _used("board", [(each.board, each) for each in stats.usage], stats.prices)
    yield _used("person", [(each.person, each) for each in stats.usage], stats.prices)


def _used(kind: str, usage: Sequence[tuple[str, Usage]], prices: Prices) -> Table:
    """For how long whose evaluations had a GPU, and the cost where prices are known.

    Who had it longest stands first.
    """
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    evaluations: Counter[tuple[str, str]] = Counter()
    for name, each in usage:
        seconds[name, each.gpu] += each.seconds
        evaluations[name, each.gpu] += each.evaluations
    longest = sorted(seconds, key=lambda key: -seconds[key])[:_MOST]
    rows = tuple(
        (
            *key,
            str(evaluations[key]),
            show_span(seconds[key]),
            *((show_cost(cost(prices, key[1], seconds[key])),) if prices else ()),
        )
        for key in longest
    )
    columns = (Column(kind), *_TIMES, *(_COST if prices else ()))
    return Table(f"time on GPUs by {kind}", columns, rows)


def _part(count: int, total: int) -> str:
    return f"{count} ({count / total:.0%})"
