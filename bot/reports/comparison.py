"""The report of two submissions side by side."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from rich.cells import cell_len

from bot.domain.durations import show_time
from bot.domain.ranking import indistinguishable
from bot.domain.score import ScoreValue
from bot.domain.submission import Submission
from bot.reports.blocks import Attachment, Block, Column, Log, Report, Table, Text, Tone
from bot.reports.lines import clean

_WIDEST = 90
"""Letters of the first column."""


class Side(Protocol):
    """One of the two, as the service gives it."""

    @property
    def submission(self) -> Submission: ...
    @property
    def scores(self) -> Mapping[str, ScoreValue]: ...


class Comparison(Protocol):
    """Both, as the service gives them."""

    @property
    def first(self) -> Side: ...
    @property
    def second(self) -> Side: ...
    @property
    def difference(self) -> str: ...
    @property
    def beside(self) -> Sequence[tuple[str, str, str]]: ...
    @property
    def too_long(self) -> bool: ...


def comparison_report(comparison: Comparison) -> Report:
    """A row for each GPU type, then the difference of the sources."""
    first, second = comparison.first, comparison.second
    names = f"#{first.submission.id}", f"#{second.submission.id}"
    blocks: list[Block] = []
    gpus = sorted({*first.scores, *second.scores})
    if gpus:
        columns = (
            Column("GPU"),
            Column(names[0], numeric=True),
            Column(names[1], numeric=True),
            Column("second is"),
        )
        rows = tuple(_row(gpu, first.scores.get(gpu), second.scores.get(gpu)) for gpu in gpus)
        blocks.append(Table("times", columns, rows))
    else:
        blocks.append(Text("neither has a ranked time", Tone.QUIET))
    if comparison.too_long:
        blocks.append(Text("the sources are too long to be compared line by line", Tone.QUIET))
    elif comparison.difference:
        blocks.append(Log("difference", comparison.difference, "diff"))
        blocks.append(Attachment("side-by-side.txt", _beside(comparison.beside).encode()))
    else:
        blocks.append(Text("the sources are the same", Tone.QUIET))
    return Report(f"{names[0]} and {names[1]}", tuple(blocks))


def _beside(rows: Sequence[tuple[str, str, str]]) -> str:
    """Both sources in two columns; a line that is longer than its column goes on as it is."""
    cleaned = [
        (clean(old).expandtabs(4), mark, clean(new).expandtabs(4)) for old, mark, new in rows
    ]
    width = min(_WIDEST, max(cell_len(old) for old, _, _ in cleaned))
    lines = (
        f"{old}{' ' * (width - cell_len(old))} {mark} {new}".rstrip() for old, mark, new in cleaned
    )
    return "\n".join(lines) + "\n"


def _row(
    gpu: str, first: ScoreValue | None, second: ScoreValue | None
) -> tuple[str, str, str, str]:
    return gpu, _time(first), _time(second), _relation(first, second)


def _time(value: ScoreValue | None) -> str:
    return "" if value is None else show_time(value.time_ns, value.half_width_ns)


def _relation(first: ScoreValue | None, second: ScoreValue | None) -> str:
    if first is None or second is None:
        return ""
    if indistinguishable(first, second):
        return "as fast"
    if second.time_ns < first.time_ns:
        return f"{first.time_ns / second.time_ns:.2f}x faster"
    return f"{second.time_ns / first.time_ns:.2f}x slower"
