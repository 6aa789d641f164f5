"""A kernel's time on the CPU, and its ratio to that of the reference, from the calls of all rounds.

Both are means of the faster half of the calls: other processes and slow cores only make calls
longer. Six runs each of eleven benchmarks, on a shared machine with two cores, differed by 7.8 % in
this ratio (standard deviation), by 12.6 % in the mean ratio of the rounds' medians, and by 17 % in
the mean of the rounds' medians of the time itself (`tests/benchmarks/cpu_times.py`).
"""

import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean, median, quantiles
from typing import NamedTuple

from runners.contract.comparison import FLOOR_NS, Ratio, is_noisy
from runners.harness.timing.intervals import Interval, mean_of_faster_half, t_quantile
from runners.harness.timing.rounds import Round

_RESAMPLES = 200

_Rounds = Sequence[Round]


class _Times(NamedTuple):
    """The times in ns that one round contributes."""

    kernel: list[float]
    cpu_per_thread: list[float]
    reference: list[float]


def _times_of(one: Round) -> _Times:
    overhead, usual = one.overhead, median(one.calibration_cpu_ns or [0.0])
    return _Times(
        [window - overhead for window in one.windows],
        [(used - usual) / one.threads for used in one.cpu_ns_used],
        [window - overhead for window in one.reference_windows],
    )


def time_interval(rounds: _Rounds) -> Interval:
    """The published time: the mean of the faster half of all calls.

    It is at least their CPU time per thread. If the ratio is known, only its rounds count, so that
    both together give the reference's own time.
    """
    rounds = with_reference(rounds) or rounds
    if len(rounds) < 2:
        return Interval(_time([*map(_times_of, rounds)]), 2 * rounds[0].error)
    return _resampled(rounds, _time)


def ratio_to_reference(rounds: _Rounds) -> Ratio | None:
    """The kernel's time divided by the reference's; None if that is not known.

    Both are measured in each round, so what slows a whole round slows both.
    """
    both = with_reference(rounds)
    if not both or _reference_time([*map(_times_of, both)]) < FLOOR_NS:
        return None
    found = _resampled(both, lambda some: _time(some) / max(FLOOR_NS, _reference_time(some)))
    hidden = fmean(each.choosable for each in both) / _time([*map(_times_of, both)])
    half_width = found.half_width + found.centre * hidden
    return Ratio(ratio=found.centre, half_width=half_width, rounds=len(both))


def with_reference(rounds: _Rounds) -> _Rounds:
    """Return the rounds with a time of the reference; none of them if they are too few."""
    both = [each for each in rounds if each.reference is not None]
    return () if len(both) < max(2, len(rounds) / 2) else both


def relative_half_width(rounds: _Rounds) -> float:
    """The half-width that decides whether a run is ranked, as a fraction of its time.

    It is that of the ratio to the reference, by which runs on the CPU are ranked, or that of the
    time if the ratio is not known.
    """
    if ratio := ratio_to_reference(rounds):
        return ratio.half_width / ratio.ratio
    interval = time_interval(rounds)
    return interval.half_width / interval.centre


def is_too_noisy(rounds: _Rounds) -> bool:
    """Whether the time is too uncertain to be ranked."""
    time_ns = _time([*map(_times_of, rounds)])
    return is_noisy(time_ns, relative_half_width(rounds) * time_ns)


def _time(rounds: Sequence[_Times]) -> float:
    windows = [time for each in rounds for time in each.kernel]
    used = [time for each in rounds for time in each.cpu_per_thread]
    least = mean_of_faster_half(used) if used else 0.0
    return max(FLOOR_NS, mean_of_faster_half(windows), least)


def _reference_time(rounds: Sequence[_Times]) -> float:
    return mean_of_faster_half([time for each in rounds for time in each.reference])


def _resampled(rounds: _Rounds, value: Callable[[Sequence[_Times]], float]) -> Interval:
    """The value of all rounds and its interval, from rounds that are drawn with replacement.

    The error is that of the middle 68 % of such draws, which a single slow round does not widen,
    and too small by one in as many as there are rounds.
    Source: B. Efron, R. Tibshirani, An Introduction to the Bootstrap (1993), 6.
    """
    drawing, times = random.Random(0), [*map(_times_of, rounds)]  # noqa: S311 - always the same
    count, centre = len(times), value(times)
    drawn = [math.log(value(drawing.choices(times, k=count))) for _ in range(_RESAMPLES)]
    parts = quantiles(drawn, n=100)
    error = (parts[83] - parts[15]) / 2 * math.sqrt(count / (count - 1))
    return Interval(centre, centre * math.expm1(t_quantile(count - 1) * error))
