"""From raw windows to confirmed times: the rules of both clocks, without any input or output."""

from dataclasses import dataclass, field
from statistics import fmean, median

from runners.contract.evaluation import Measurement, StopReason
from runners.contract.verdict import Verdict
from runners.harness.ruling import Ruling
from runners.harness.statistics import rounds_interval, standard_error_of_median

IDLE_GAP_NS = 12_000.0
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
    before: list[float] = field(default_factory=list)
    """Overhead of the candidate's own windows, before it imported the submission."""
    beside: list[float] = field(default_factory=list)
    """Overhead of a trusted candidate's windows, taken between the timed ones."""

    @property
    def overhead(self) -> float:
        """What a window costs beyond the kernel: the smaller calibration, which favours none."""
        return min(median(self.before), median(self.beside))

    @property
    def bound(self) -> float:
        """The kernel's time as the judge saw it."""
        return median(self.windows) - self.overhead

    @property
    def resolution(self) -> float:
        """By how much the bound may be off: noise of both medians, and drift between them."""
        noise = standard_error_of_median(self.windows) + standard_error_of_median(self.beside)
        return 3 * noise + abs(median(self.before) - median(self.beside))


def host_values(rounds: list[Round]) -> list[list[float]]:
    """On the CPU the window is the clock: every sample less its round's overhead."""
    return [[max(FLOOR_NS, w - each.overhead) for w in each.windows] for each in rounds]


def host_resolution(rounds: list[Round]) -> float:
    """By how much a time on the CPU may be off, in ns."""
    return max(FLOOR_NS, median(each.resolution for each in rounds))


def device_values(rounds: list[Round]) -> list[list[float]]:
    """On a GPU the candidate's events are the value, once the bound has confirmed them.

    A claim below `bound - resolution` is refused with both numbers.
    """
    resolution = device_resolution(rounds)
    for each in rounds:
        claim = median(each.claims)
        if claim < each.bound - resolution or claim <= 0:
            raise Ruling(
                Verdict.TIMING_REJECTED,
                f"{claim / 1e3:.2f} us were claimed, but the judge saw {each.bound / 1e3:.2f} us"
                f" +- {resolution / 1e3:.2f}",
            )
    return [list(each.claims) for each in rounds]


def device_resolution(rounds: list[Round]) -> float:
    """By how much a claim on a GPU could be below the truth without being noticed, in ns."""
    return median(each.resolution for each in rounds) + IDLE_GAP_NS


def measurement(rounds: list[Round], stop: StopReason, *, on_gpu: bool) -> Measurement:
    """What the rounds say together; Ruling when a claim was not confirmed."""
    values = device_values(rounds) if on_gpu else host_values(rounds)
    interval = rounds_interval(values)
    return Measurement(
        time_ns=interval.centre,
        half_width_ns=interval.half_width,
        bound_ns=fmean(each.bound for each in rounds),
        resolution_ns=device_resolution(rounds) if on_gpu else host_resolution(rounds),
        rounds=len(rounds),
        samples=tuple(tuple(samples) for samples in values),
        stop_reason=stop,
        claimed_ns=median(median(each.claims) for each in rounds) if on_gpu else None,
    )
