"""The chart of a season: the ranked times, and the best one so far as it fell."""

from collections.abc import Sequence

from bot.domain.durations import common_unit
from bot.domain.leaderboard import Season
from bot.domain.score import Score
from bot.reports.blocks import Chart, Point, Series, Stroke

DAY = "day (UTC)"


def season_chart(season: Season) -> Chart | None:
    """None as long as nobody is ranked."""
    if not season.scores:
        return None
    scale, unit = common_unit([each.value.time_ns for each in season.scores])
    best = [Point(each.submitted_at, each.value.time_ns / scale) for each in season.records]
    best.append(Point(season.until, best[-1].value))
    leaderboard = season.leaderboard
    title = f"{leaderboard.board.name} on {leaderboard.gpu}: the season's best time"
    series = (
        Series("best so far", tuple(best), Stroke.STEPS),
        Series(_runs(season), points(season.scores, scale), Stroke.DOTS),
    )
    return Chart(title, DAY, f"time ({unit})", series)


def _runs(season: Season) -> str:
    shown, total = len(season.scores), season.total
    return "each ranked run" if shown == total else f"ranked runs ({shown:,} of {total:,})"


def points(scores: Sequence[Score], scale: float) -> tuple[Point, ...]:
    """Scores in the unit of `scale` nanoseconds, where they were submitted."""
    return tuple(
        Point(each.submitted_at, each.value.time_ns / scale, each.value.half_width_ns / scale)
        for each in scores
    )
