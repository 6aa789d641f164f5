"""Speedups with their intervals, and how a time that counts is shown."""

from dataclasses import dataclass

from bot.domain.scoring import ScoreValue
from bot.domain.times import show_factor, show_time
from runners.contract.comparison import Ratio


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """How many times faster a time is than another, with the ends of its interval.

    Without an interval of both times there are no ends; `high` is also None if it is unlimited.
    """

    factor: float
    low: float | None = None
    high: float | None = None


def speed_up(slower: ScoreValue, faster: ScoreValue) -> SpeedUp:
    """Return how many times faster the second time is than the first."""
    factor = slower.time_ns / faster.time_ns
    if not (slower.confirmed and faster.confirmed):
        return SpeedUp(factor)
    low = max(0.0, slower.time_ns - slower.uncertainty_ns) / faster.upper_ns
    least_ns = faster.time_ns - faster.uncertainty_ns
    return SpeedUp(factor, low, slower.upper_ns / least_ns if least_ns > 0 else None)


def of_ratio(measured: Ratio) -> SpeedUp:
    """Return how many times faster a submission is than what was timed in turn with it."""
    least = measured.ratio - measured.half_width
    low = 1 / (measured.ratio + measured.half_width)
    return SpeedUp(1 / measured.ratio, low, 1 / least if least > 0 else None)


def show_speed_up(slower: ScoreValue, faster: ScoreValue) -> str:
    """Return a speedup such as `3.2x (2.9 to 3.6)`, without ends that are rounded away."""
    return show(speed_up(slower, faster))


def show(found: SpeedUp) -> str:
    """Return a speedup in words, as `show_speed_up` does."""
    factor = show_factor(found.factor)[:-1]
    if found.low is None:
        return f"{factor}x"
    decimals = len(factor.partition(".")[2])
    low = f"{found.low:.{decimals}f}"
    if found.high is None:
        return f"{factor}x (at least {low})"
    high = f"{found.high:.{decimals}f}"
    return f"{factor}x" if low == factor == high else f"{factor}x ({low} to {high})"


UNCONFIRMED = " (unconfirmed)"


def show_score(value: ScoreValue, unconfirmed: str = UNCONFIRMED) -> str:
    """Return a time that counts, such as `5.9 µs ± 1.2`, marked if the judge has no own value."""
    return show_time(value.time_ns, value.uncertainty_ns) + ("" if value.confirmed else unconfirmed)
