"""The report of one leaderboard: ranks, times with intervals, and who is absent and why."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from bot.domain.board import Board
from bot.domain.deadline import show_deadline
from bot.domain.durations import show_time
from bot.domain.score import ScoreValue, Standing
from bot.ports import Refusal
from bot.reports.blocks import Block, Column, Report, Table, Text, Tone
from bot.reports.evaluation import VERDICT_WORDS
from runners.contract.verdict import Verdict


class Leaderboard(Protocol):
    """One task version on one GPU type, as the standings service gives it."""

    @property
    def board(self) -> Board: ...
    @property
    def version(self) -> int: ...
    @property
    def gpu(self) -> str: ...
    @property
    def entries(self) -> Sequence[Standing]: ...
    @property
    def refused(self) -> Sequence[Refusal]: ...
    @property
    def note(self) -> str: ...


_COLUMNS = (
    Column("rank", numeric=True),
    Column("who"),
    Column("time", numeric=True),
    Column("vs first", numeric=True),
    Column("attempts", numeric=True),
    Column("submission", numeric=True),
)
_ABSENT_COLUMNS = (
    Column("who"),
    Column("verdict"),
    Column("reason"),
    Column("submission", numeric=True),
)


def standings_report(leaderboard: Leaderboard) -> Report:
    """The ranked table, then the people whose ranked runs did not pass."""
    board = leaderboard.board
    title = f"{board.name} on {leaderboard.gpu}"
    if leaderboard.version > 1:
        title += f" (task version {leaderboard.version})"
    blocks = list(_on_board(leaderboard))
    if leaderboard.entries:
        blocks.append(Table("standings", _COLUMNS, _ranked(leaderboard.entries)))
    else:
        blocks.append(Text("nobody is ranked yet", Tone.QUIET))
    if leaderboard.refused:
        rows = tuple(_absent(refusal) for refusal in leaderboard.refused)
        blocks.append(Table("not ranked", _ABSENT_COLUMNS, rows))
    return Report(title, tuple(blocks))


def _on_board(leaderboard: Leaderboard) -> Iterator[Block]:
    """What stands above the ranks: the deadline, and what is said of this task version."""
    deadline = leaderboard.board.deadline
    if deadline is not None:
        yield Text(f"deadline {show_deadline(deadline)}", Tone.QUIET)
    if leaderboard.note:
        yield Text(f"task version {leaderboard.version}: {leaderboard.note}", Tone.QUIET)


def _ranked(entries: Sequence[Standing]) -> tuple[tuple[str, ...], ...]:
    ranks = [entry.rank for entry in entries]
    first = entries[0].score.value
    return tuple(
        (
            f"{entry.rank}=" if ranks.count(entry.rank) > 1 else str(entry.rank),
            entry.score.person_name,
            show_time(entry.score.value.time_ns, entry.score.value.half_width_ns),
            _slower(first, entry.score.value),
            str(entry.attempts),
            f"#{entry.score.submission}",
        )
        for entry in entries
    )


def _slower(first: ScoreValue, value: ScoreValue) -> str:
    return f"{value.time_ns / first.time_ns:.2f}x"


def _absent(refusal: Refusal) -> tuple[str, ...]:
    return (
        refusal.person_name,
        VERDICT_WORDS[Verdict(refusal.verdict)],
        _first_line(refusal.message),
        f"#{refusal.submission}",
    )


def _first_line(text: str) -> str:
    line = text.strip().split("\n", maxsplit=1)[0]
    return line if len(line) <= 100 else f"{line[:99]}…"
