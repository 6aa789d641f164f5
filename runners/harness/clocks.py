"""From raw windows to confirmed times: the rules of both clocks, without any input or output."""

import math
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from runners.contract.evaluation import Measurement, StopReason
from runners.contract.verdict import Verdict
from runners.harness.ruling import Ruling
from runners.harness.statistics import rounds_interval, standard_error_of_median

IDLE_GAP_NS = 8_000.0
"""How much GPU work a window's idle gaps may hide: launch and hand-over that a no-op pays too."""

FLOOR_NS = 1_000.0
"""No sample on the CPU counts as less: a window cannot tell it from nothing."""


@dataclass(slots=True)
class Round:
    """One fresh candidate's raw numbers, all in nanoseconds."""

    windows: list[float] = field(default_factory=list)
    """The judge's own clock, from the input's release to the captured output."""
    claims: list[float] = field(default_factory=list)
    """The candidate's clock: precise on a GPU, and forgeable."""
    steady: list[float] = field(default_factory=list)
    """Overhead of a trusted candidate's windows, before this one imported the submission."""
    beside: list[float] = field(default_factory=list)
    """Overhead of the same trusted candidate's windows, taken between the timed ones."""

    @property
    def overhead(self) -> float:
        """What a window costs beyond the kernel, as the interleaved calibration saw it.

        It may not exceed what the same trusted candidate needed before the submission was
        imported, beyond the noise: who disturbs the calibration must not gain by it.
        """
        noise = standard_error_of_median(self.steady) + standard_error_of_median(self.beside)
        return min(median(self.beside), median(self.steady) + 3 * noise)

    @property
    def bound(self) -> float:
        """The kernel's time as the judge saw it."""
        return median(self.windows) - self.overhead

    @property
    def drift(self) -> float:
        """By how much the machine changed between calibration and timing, with its sign."""
        return median(self.beside) - median(self.steady)

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


def host_values(rounds: list[Round]) -> list[list[float]]:
    """On the CPU the window is the clock: every sample less its round's overhead."""
    return [[max(FLOOR_NS, w - each.overhead) for w in each.windows] for each in rounds]


def device_values(rounds: list[Round]) -> list[list[float]]:
    """On a GPU the candidate's events are the value, once the bound has confirmed them.

    A claim below `bound - resolution` is refused with both numbers.
    """
    claim = fmean(median(each.claims) for each in rounds)
    bound = fmean(each.bound for each in rounds)
    tolerance = device_resolution(rounds)
    if claim <= 0 or claim < bound - tolerance:
        raise Ruling(
            Verdict.TIMING_REJECTED,
            f"{claim / 1e3:.2f} us were claimed, but the judge saw {bound / 1e3:.2f} us"
            f" ± {tolerance / 1e3:.2f}",
        )
    return [list(each.claims) for each in rounds]


def device_resolution(rounds: list[Round]) -> float:
    """By how much a claim on a GPU could be below the truth without being noticed, in ns."""
    return resolution(rounds) + IDLE_GAP_NS


def measurement(rounds: list[Round], stop: StopReason, *, on_gpu: bool) -> Measurement:
    """What the rounds say together; Ruling when a claim was not confirmed."""
    values = device_values(rounds) if on_gpu else host_values(rounds)
    interval = rounds_interval(values)
    return Measurement(
        time_ns=interval.centre,
        half_width_ns=interval.half_width,
        bound_ns=fmean(each.bound for each in rounds),
        resolution_ns=device_resolution(rounds) if on_gpu else max(FLOOR_NS, resolution(rounds)),
        rounds=len(rounds),
        samples=tuple(tuple(samples) for samples in values),
        stop_reason=stop,
        claimed_ns=median(median(each.claims) for each in rounds) if on_gpu else None,
    )
