"""From raw windows to confirmed times: the rules of both clocks, without any input or output."""

import math
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from runners.contract.evaluation import Measurement, StopReason
from runners.contract.verdict import Verdict
from runners.harness.ruling import Ruling
from runners.harness.statistics import (
    Interval,
    rounds_interval,
    standard_error_of_median,
    t_quantile,
)

IDLE_GAP_NS = 8_000.0
"""How much GPU work a window's idle gaps may hide: launch and hand-over that a no-op pays too."""

FLOOR_NS = 1_000.0
"""No time on the CPU counts as less: a window cannot tell it from nothing."""


@dataclass(slots=True)
class Round:
    """One fresh candidate's raw numbers, all in nanoseconds."""

    threads: int = 1
    """How many threads a kernel may use at once."""
    windows: list[float] = field(default_factory=list)
    """The judge's own clock, from the input's release to the captured output."""
    claims: list[float] = field(default_factory=list)
    """The candidate's clock: precise on a GPU, and forgeable."""
    used: list[float] = field(default_factory=list)
    """CPU time of all of the candidate's threads in each window, as the kernel counts it."""
    used_beside: list[float] = field(default_factory=list)
    """The trusted candidate's CPU time beyond its own reading, in its windows."""
    beside: list[float] = field(default_factory=list)
    """Overhead of a trusted candidate's windows, taken between the timed ones."""
    steady: list[float] = field(default_factory=list)
    """The same before the submission was imported; on the CPU, where it is frozen meanwhile and
    can disturb nothing, there is no need of it."""
    discarded: int = 0
    """Calls that were repeated, since something seemed to run when all should stand still."""

    @property
    def overhead(self) -> float:
        """What a window costs beyond the kernel, as the interleaved calibration saw it.

        It may not exceed what the same trusted candidate needed before the submission was
        imported, beyond the noise: who disturbs the calibration must not gain by it.
        """
        beside = median(self.beside)
        if not self.steady:
            return beside
        noise = standard_error_of_median(self.steady) + standard_error_of_median(self.beside)
        return min(beside, median(self.steady) + 3 * noise)

    @property
    def bound(self) -> float:
        """The kernel's time as the judge saw it: never less than its share of CPU time.

        CPU time hardly depends on what else the machine does, while a window's difference can
        come out as nothing on a busy one.
        """
        return max(median(self.windows) - self.overhead, self.busy)

    @property
    def busy(self) -> float:
        """The least wall time in which the threads could have used the CPU time that they did."""
        if not self.used:
            return -math.inf
        return (median(self.used) - median(self.used_beside)) / self.threads

    @property
    def drift(self) -> float:
        """By how much the machine changed between calibration and timing, with its sign."""
        return median(self.beside) - median(self.steady) if self.steady else 0.0

    @property
    def error(self) -> float:
        """The standard error of the bound."""
        return math.hypot(
            standard_error_of_median(self.windows), standard_error_of_median(self.beside)
        )


def resolution(rounds: list[Round]) -> float:
    """By how much the bound over all rounds may be off: three standard errors, and the drift."""
    within = math.sqrt(fmean(each.error**2 for each in rounds) / len(rounds))
    between = stdev(each.bound for each in rounds) / math.sqrt(len(rounds)) if rounds[1:] else 0.0
    return 3 * max(within, between) + abs(fmean(each.drift for each in rounds))


def host_interval(rounds: list[Round]) -> Interval:
    """On the CPU the window is the clock: the mean of the bounds, with their t interval."""
    bounds = [each.bound for each in rounds]
    centre = max(FLOOR_NS, fmean(bounds))
    if len(bounds) < 2:
        return Interval(centre, 2 * rounds[0].error)
    return Interval(centre, t_quantile(len(bounds) - 1) * stdev(bounds) / math.sqrt(len(bounds)))


def device_interval(rounds: list[Round]) -> Interval:
    """On a GPU the candidate's events are the value, once the bound has confirmed them.

    A claim below `bound - resolution` is refused with both numbers, and so is a claim of nothing
    in any call, whatever the others are.
    """
    claim = fmean(median(each.claims) for each in rounds)
    bound = fmean(each.bound for each in rounds)
    tolerance = device_resolution(rounds)
    nothing = any(each <= 0 for of_round in rounds for each in of_round.claims)
    if nothing or claim < bound - tolerance:
        raise Ruling(
            Verdict.TIMING_REJECTED,
            f"{claim / 1e3:.2f} us were claimed, but the judge saw {bound / 1e3:.2f} us"
            f" ± {tolerance / 1e3:.2f}",
        )
    return rounds_interval([each.claims for each in rounds])


def audit_of(rounds: list[Round]) -> Ruling | None:
    """What a ranked GPU claim deserves which is neither confirmed nor refuted.

    An honest claim lies about its bound; one in the lower half of what the resolution leaves
    open may be a lie about a short kernel, and does not rank until somebody has looked.
    """
    claim = fmean(median(each.claims) for each in rounds)
    bound = fmean(each.bound for each in rounds)
    open_ns = device_resolution(rounds)
    if claim >= bound - open_ns / 2:
        return None
    return Ruling(
        Verdict.AUDIT,
        f"{claim / 1e3:.2f} us were claimed and the judge saw {bound / 1e3:.2f} us"
        f" ± {open_ns / 1e3:.2f}: too coarse to tell",
    )


def device_resolution(rounds: list[Round]) -> float:
    """By how much a claim on a GPU could be below the truth without being noticed, in ns."""
    return resolution(rounds) + IDLE_GAP_NS


def interval_of(rounds: list[Round], *, on_gpu: bool) -> Interval:
    """The value of all rounds together; Ruling when a claim was not confirmed."""
    return device_interval(rounds) if on_gpu else host_interval(rounds)


def measurement(rounds: list[Round], stop: StopReason, *, on_gpu: bool) -> Measurement:
    """What the rounds say together; Ruling when a claim was not confirmed."""
    interval = interval_of(rounds, on_gpu=on_gpu)
    own = [[w - each.overhead for w in each.windows] for each in rounds]
    samples = [each.claims for each in rounds] if on_gpu else own
    return Measurement(
        time_ns=interval.centre,
        half_width_ns=interval.half_width,
        bound_ns=fmean(each.bound for each in rounds),
        resolution_ns=device_resolution(rounds) if on_gpu else max(FLOOR_NS, resolution(rounds)),
        rounds=len(rounds),
        samples=tuple(tuple(values) for values in samples),
        discarded=sum(each.discarded for each in rounds),
        stop_reason=stop,
        claimed_ns=fmean(median(each.claims) for each in rounds) if on_gpu else None,
    )
