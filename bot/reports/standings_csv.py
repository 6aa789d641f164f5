"""Standings as a table for spreadsheets and programs."""

import csv
import io
from collections.abc import Iterable, Iterator

from bot.domain.leaderboard import BoardStandings
from bot.domain.reference_times import speed_up
from bot.reports.spreadsheet import inert

COLUMNS = (
    "board", "gpu", "task_version", "rank", "person", "time_ns", "half_width_ns", "vs_reference",
    "attempts", "submission", "submitted_at", "pool",
)  # fmt: skip


def standings_csv(leaderboards: Iterable[BoardStandings]) -> str:
    """A line for each entry of each leaderboard, times in nanoseconds; no name is a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for leaderboard in leaderboards:
        writer.writerows([inert(cell) for cell in row] for row in _rows(leaderboard))
    return text.getvalue()


def _rows(leaderboard: BoardStandings) -> Iterator[tuple[object, ...]]:
    reference = leaderboard.reference
    for entry in leaderboard.entries:
        score = entry.score
        yield (
            leaderboard.board.name,
            leaderboard.gpu,
            leaderboard.version,
            entry.rank,
            score.person_name,
            score.value.time_ns,
            score.value.half_width_ns,
            None if reference is None else speed_up(reference, score.value),
            entry.attempts,
            score.submission,
            score.submitted_at.isoformat(),
            score.pool,
        )
