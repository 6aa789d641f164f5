"""Computes what pages draw next to standings and benchmarks: interval marks and histograms."""

import math
import statistics
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from bot.domain.scoring import Standing

_LOGARITHMIC_FROM = 4.0
"""Times that differ by more than this factor use a logarithmic scale."""
_FEW = 8
"""With fewer samples than this, a histogram shows all."""
_MARGIN = 0.03


@dataclass(frozen=True, slots=True)
class IntervalMark:
    """A standing's time and interval, and the span of all who share its rank, on a scale of 100."""

    at: float
    left: float
    right: float
    band: tuple[float, float] | None = None
    """Where the band begins, and its width."""


@dataclass(frozen=True, slots=True)
class Spans:
    """The intervals of some standings on one scale, and the times at its ends in nanoseconds."""

    rows: tuple[IntervalMark, ...]
    low_ns: float
    high_ns: float
    logarithmic: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram; heights in percent."""

    left: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """How samples are distributed between two values; marks are `(name, position)`."""

    bars: tuple[Bar, ...]
    low: float
    high: float
    median: float
    count: int
    beyond: int
    """How many samples are slower than the last bar: about the slowest hundredth."""
    marks: tuple[tuple[str, float], ...]
    logarithmic: bool = False


class Scale:
    """Maps values between two limits to percent."""

    def __init__(self, low: float, high: float, *, logarithmic: bool = False) -> None:
        self._transform = math.log if logarithmic else float
        self._low = self._transform(low)
        self._width = self._transform(high) - self._low or 1.0

    def __call__(self, value: float) -> float:
        share = (self._transform(value) - self._low) / self._width
        return round(100 * min(1.0, max(0.0, share)), 2)


def spans(standings: Sequence[Standing], among: Sequence[Standing] = ()) -> Spans | None:
    """Return the intervals of these standings, in order; None when there are none.

    If they are one page of a leaderboard, `among` has all of it: bands then span other pages too.
    """
    if not standings:
        return None
    groups = _groups(among or standings, {each.rank for each in standings})
    low, high = (
        min(each.low for each in groups.values()),
        max(each.high for each in groups.values()),
    )
    logarithmic = high > _LOGARITHMIC_FROM * low
    low, high = _widened(low, high, logarithmic=logarithmic)
    scale = Scale(low, high, logarithmic=logarithmic)
    rows = tuple(_interval(each, groups[each.rank], scale) for each in standings)
    return Spans(rows, low, high, logarithmic)


@dataclass(slots=True)
class _Group:
    """People who share a rank: how many, and their span in nanoseconds."""

    count: int = 0
    low: float = math.inf
    high: float = 0.0


def _groups(standings: Iterable[Standing], ranks: Container[int]) -> dict[int, _Group]:
    groups: defaultdict[int, _Group] = defaultdict(_Group)
    for each in standings:
        if each.rank in ranks:
            group, (low, high) = groups[each.rank], _ends(each)
            group.count += 1
            group.low, group.high = min(group.low, low), max(group.high, high)
    return groups


def _interval(standing: Standing, group: _Group, scale: Scale) -> IntervalMark:
    low, high = _ends(standing)
    band = None
    if group.count > 1:
        left = scale(group.low)
        band = (left, round(scale(group.high) - left, 2))
    return IntervalMark(scale(standing.score.value.time_ns), scale(low), scale(high), band)


def _ends(standing: Standing) -> tuple[float, float]:
    """Return the interval's ends; the lower one is at least a tenth of the time."""
    value = standing.score.value
    least = 0.1 * value.time_ns
    return max(least, value.time_ns - value.uncertainty_ns), value.upper_ns


def _widened(low: float, high: float, *, logarithmic: bool) -> tuple[float, float]:
    if logarithmic:
        factor = (high / low) ** _MARGIN
        return low / factor, high * factor
    margin = _MARGIN * (high - low) or _MARGIN * high or 1.0
    return max(0.0, low - margin), high + margin


def histogram(
    samples: Sequence[float], marks: Sequence[tuple[str, float]] = (), bins: int = 48
) -> Histogram | None:
    """Return the distribution of samples with the marks on its scale; None without samples.

    The scale leaves out slow samples that would more than double it, but at most one in 25, or the
    slowest one. It is logarithmic if its ends are far apart.
    A sample minus its calibration may be negative on a busy CPU; it is drawn as 0.
    """
    ordered = sorted(max(each, 0.0) for each in samples if math.isfinite(each))
    if not ordered:
        return None
    usual = ordered[-1 - max(1, len(ordered) // 25)] if len(ordered) >= _FEW else ordered[-1]
    cut = max(each for each in ordered if each - ordered[0] <= 2 * (usual - ordered[0]))
    marked = [value for _, value in marks]
    low, high = min([ordered[0], *marked]), max([cut, *marked])
    if low == high:
        low, high = _widened(low, high, logarithmic=False)
    logarithmic = low > 0 and high > _LOGARITHMIC_FROM * low
    scale, width = Scale(low, high, logarithmic=logarithmic), 100 / bins
    counts = [0] * bins
    shown = [each for each in ordered if each <= high]
    for each in shown:
        counts[min(bins - 1, int(scale(each) / width))] += 1
    bars = tuple(
        Bar(round(index * width, 2), round(width * 0.86, 2), round(100 * count / max(counts), 1))
        for index, count in enumerate(counts)
        if count
    )
    return Histogram(
        bars=bars,
        low=low,
        high=high,
        median=statistics.median(ordered),
        count=len(ordered),
        beyond=len(ordered) - len(shown),
        marks=tuple((name, scale(value)) for name, value in marks),
        logarithmic=logarithmic,
    )
