"""Means, medians and confidence intervals of few values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

T_975 = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
"""The 97.5 % quantile of Student's t for 1 to 30 degrees of freedom."""


def t_quantile(degrees: int) -> float:
    """The 97.5 % quantile of Student's t; Cornish-Fisher expansion above 30 degrees of freedom."""
    if degrees < 1:
        raise ValueError("an interval needs at least two values")
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    z = 1.959964
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


@dataclass(frozen=True, slots=True)
class Interval:
    """A centre with the half-width of its 95 % interval, in the unit of the values."""

    centre: float
    half_width: float


def log_interval(values: Sequence[float]) -> Interval:
    """Geometric centre and t interval of positive values, computed on their logs.

    The half-width of a single value is infinite.
    """
    logs = [math.log(value) for value in values]
    centre = math.exp(fmean(logs))
    if len(logs) < 2:
        return Interval(centre, math.inf)
    spread = t_quantile(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return Interval(centre, centre * math.expm1(spread))


def rounds_interval(rounds: Sequence[Sequence[float]]) -> Interval:
    """The interval of the medians of rounds; for a single round, that of its samples."""
    if len(rounds) > 1:
        return log_interval([median(samples) for samples in rounds])
    spread = log_interval(rounds[0])
    half_width = spread.half_width if math.isfinite(spread.half_width) else spread.centre
    return Interval(median(rounds[0]), half_width)


def mean_of_faster_half(values: Sequence[float]) -> float:
    """The mean of the smaller half of the values, with the middle one."""
    return fmean(sorted(values)[: (len(values) + 1) // 2])


MEDIAN_ERROR = 1.2533
"""The standard error of a median, as a multiple of that of the mean."""


def standard_error_of_median(samples: Sequence[float]) -> float:
    """The standard error of a median, from the interquartile range (normal near the centre)."""
    if len(samples) < 2:
        return 0.0
    ordered = sorted(samples)
    quarter = len(ordered) // 4
    spread = (ordered[-1 - quarter] - ordered[quarter]) / 1.349
    return MEDIAN_ERROR * spread / math.sqrt(len(ordered))


def median_gap(ratios: list[float], *, slower_first: bool) -> tuple[float, float]:
    """Return how much slower the slower one is by the median of the ratios, and the error.

    Slow rounds hardly move the median. Its error is that of its better half of the rounds, which
    slow rounds do not widen.
    """
    sign = 1 if slower_first else -1
    logs = [sign * math.log(each) for each in ratios]
    middle = median(logs)
    squares = sum(max(0.0, middle - each) ** 2 for each in logs)
    error = MEDIAN_ERROR * math.sqrt(squares / (len(logs) // 2) / len(logs))
    return middle, t_quantile(len(logs) - 1) * error
