"""The report of a person's own way on a board: standings, trend, submissions."""

from collections.abc import Sequence

from bot.domain.durations import common_unit, show_factor, show_time
from bot.domain.leaderboard import OwnStanding, PersonalBoard
from bot.domain.reference_times import speed_up
from bot.reports.blocks import Block, Chart, Column, Report, Series, Table, Text, Tone
from bot.reports.history import history_table
from bot.reports.placement import ordinal
from bot.reports.season import DAY, points

_COLUMNS = (
    Column("GPU"),
    Column("place"),
    Column("best", numeric=True),
    Column("since first", numeric=True),
)
_VS_REFERENCE = Column("vs reference", numeric=True)
_ATTEMPTS = Column("attempts", numeric=True)


def personal_report(personal: PersonalBoard) -> Report:
    """Where the person stands on each GPU type, how that came, and what was submitted."""
    blocks: list[Block] = []
    if personal.standings:
        title = f"{personal.board.name}: your ranked times"
        blocks += [_best(personal.standings), trend(title, personal.standings)]
    else:
        blocks.append(Text("you are not ranked yet", Tone.QUIET))
    if personal.past:
        blocks.append(history_table(personal.past))
    return Report(f"you on {personal.board.name}", tuple(blocks))


def _best(standings: Sequence[OwnStanding]) -> Table:
    """A row for each GPU type; what is gained on the reference where any of them knows its time."""
    known = any(own.reference is not None for own in standings)
    columns = (*_COLUMNS, *((_VS_REFERENCE,) if known else ()), _ATTEMPTS)
    rows = (
        (*_row(own), *((_gain(own),) if known else ()), str(own.standing.attempts))
        for own in standings
    )
    return Table("your best", columns, tuple(rows))


def _gain(own: OwnStanding) -> str:
    best = own.standing.score.value
    return "" if own.reference is None else show_factor(speed_up(own.reference, best))


def _row(own: OwnStanding) -> tuple[str, ...]:
    best = own.standing.score.value
    gain = own.scores[0].value.time_ns / best.time_ns
    return (
        own.gpu,
        f"{ordinal(own.standing.rank)} of {own.entries}",
        show_time(best.time_ns, best.half_width_ns),
        f"{gain:.2f}x",
    )


def trend(title: str, standings: Sequence[OwnStanding]) -> Chart:
    """How a person's ranked times on a board went, a series for each GPU type."""
    times = [score.value.time_ns for own in standings for score in own.scores]
    scale, unit = common_unit(times)
    series = tuple(Series(own.gpu, points(own.scores, scale)) for own in standings)
    return Chart(title, DAY, f"time ({unit})", series)
