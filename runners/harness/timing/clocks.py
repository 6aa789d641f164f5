"""From raw windows to confirmed times: the rules of both clocks, without any input or output."""

import math
from statistics import fmean, stdev

from runners.contract.evaluation import Measurement, StopReason
from runners.contract.verdict import Verdict
from runners.harness.timing.rounds import Round
from runners.harness.timing.statistics import Interval, rounds_interval, t_quantile
from runners.harness.verdicts import VerdictError

IDLE_GAP_NS = 4_000.0
"""How much GPU work a window may hide: the time stamps and the last word that a no-op pays too.

Measured by attacks which leave them out or poll for them, and gain 2.8 to 3.8 us: `hostile_cuda` in
`tests/exploits`.
"""
HONEST_NS = 2_000.0
HONEST = 0.025
"""How far, beyond the noise, the claims of honest kernels lie below their bounds at most: in
nanoseconds, or as a part of the bound if that is more.

An honest kernel may leave less of its output in the cache than the calibration did, and what it
writes into temporary tensors may still be on its way when its end is stamped: 4.1 to 4.3 us of 150
to 163 in `tests/gpu/popcorn.py`, whose kernel is thirty launches.
"""

VARIED_NS = 1_000.0
VARIED = 0.005
"""How much of the noise in a candidate's own windows, in nanoseconds or as a part of its bound, can
make a claim on a GPU less sure; the larger counts.

Windows and claims of honest calls vary together, and their medians stay as far apart as ever. Who
varies on purpose and claims the same each time would else have any claim believed.
"""

CREDIBLE = 0.95
"""The part of the least time by the card's nominal rates below which no time is believed."""

NARROW_NS = 250.0
"""As narrow as the interval of a claim on a GPU need be on either side, however short the kernel.

The medians of single rounds differ by some 180 ns whatever the kernel's length, for they depend
on where a candidate's memory lies, and a claim is confirmed to some four microseconds: rounds that
tell a kernel of five to half a per cent would be spent on nothing.
"""

FLOOR_NS = 1_000.0
"""No time on the CPU counts as less: a window cannot tell it from nothing."""


def resolution(rounds: list[Round]) -> float:
    """By how much the bound over all rounds may be off: three standard errors, and the drift."""
    return _noise(rounds) + _drift(rounds)


def _noise(rounds: list[Round]) -> float:
    within = _together([each.error for each in rounds])
    between = stdev(each.bound for each in rounds) / math.sqrt(len(rounds)) if rounds[1:] else 0.0
    return 3 * max(within, between)


def _together(errors: list[float]) -> float:
    """The standard error of a mean of rounds, by those of each."""
    return math.sqrt(fmean(error**2 for error in errors) / len(errors))


def _drift(rounds: list[Round]) -> float:
    return abs(fmean(each.drift for each in rounds))


def claim_resolution(rounds: list[Round]) -> float:
    """By how much bound and claim may be apart by chance: the candidate's noise counts little."""
    trusted = 3 * _together([each.trusted_error for each in rounds])
    varied = max(VARIED_NS, VARIED * fmean(each.bound for each in rounds))
    return min(_noise(rounds), trusted + varied) + _drift(rounds)


def host_interval(rounds: list[Round]) -> Interval:
    """Where the window is the clock: the mean of the bounds, with their t interval."""
    bounds = [each.bound for each in rounds]
    centre = max(FLOOR_NS, fmean(bounds))
    if len(bounds) < 2:
        return Interval(centre, 2 * rounds[0].error)
    return Interval(centre, t_quantile(len(bounds) - 1) * stdev(bounds) / math.sqrt(len(bounds)))


def device_interval(rounds: list[Round]) -> Interval:
    """On a GPU the candidate's events are the value, once the bound has confirmed them.

    A claim below `bound - resolution` is refused with both numbers, and so is a claim of nothing
    in any call, whatever the others are. What is held against the bound is the very value that
    counts: by another mean of the rounds, claims that differ could pass and be worth less.
    """
    if any(each <= 0 for of_round in rounds for each in of_round.claims):
        raise _rejected(0.0, rounds)
    interval = _value(rounds)
    if interval.centre < confirmed(rounds) - device_resolution(rounds):
        raise _rejected(interval.centre, rounds)
    return interval


def _value(rounds: list[Round]) -> Interval:
    return rounds_interval([each.claims for each in rounds])


def confirmed(rounds: list[Round]) -> float:
    """The bounds of all rounds together, as claims are put together: their geometric mean."""
    return math.exp(fmean(math.log(max(FLOOR_NS, each.bound)) for each in rounds))


def _rejected(claim: float, rounds: list[Round]) -> VerdictError:
    return VerdictError(
        Verdict.TIMING_REJECTED,
        f"{claim / 1e3:.2f} us were claimed, but the judge saw {confirmed(rounds) / 1e3:.2f} us"
        f" ± {device_resolution(rounds) / 1e3:.2f}",
    )


def audit_of(rounds: list[Round]) -> VerdictError | None:
    """What a ranked GPU claim deserves which is neither confirmed nor refuted.

    A claim further below its bound than those of honest kernels are may be a lie about a short
    one, and does not rank until somebody has looked.
    """
    if not claimed(rounds):
        return None
    claim, bound = _value(rounds).centre, confirmed(rounds)
    if claim >= bound - max(HONEST_NS, HONEST * bound) - claim_resolution(rounds):
        return None
    return VerdictError(
        Verdict.AUDIT,
        f"{claim / 1e3:.2f} us were claimed and the judge saw {bound / 1e3:.2f} us"
        f" ± {device_resolution(rounds) / 1e3:.2f}: too coarse to tell",
    )


def beneath(value: float, floor: float | None) -> VerdictError | None:
    """What a time deserves that is less than the card's memory and arithmetic allow, in ns."""
    if floor is None or value >= CREDIBLE * floor:
        return None
    return VerdictError(
        Verdict.AUDIT,
        f"{value / 1e3:.2f} us is less than the {floor / 1e3:.2f} us which this GPU needs at its"
        " nominal rates for the bytes and operations of the task",
    )


def device_resolution(rounds: list[Round]) -> float:
    """By how much a claim on a GPU could be below the truth without being noticed, in ns."""
    return claim_resolution(rounds) + _hidden(rounds)


def _published(rounds: list[Round]) -> float:
    """What a window may hide it may hide also where the judge's own clock is the value."""
    return device_resolution(rounds) if claimed(rounds) else resolution(rounds) + _hidden(rounds)


def _hidden(rounds: list[Round]) -> float:
    gap = IDLE_GAP_NS if any(each.on_gpu for each in rounds) else 0.0
    return gap + fmean(each.skippable for each in rounds)


def claimed(rounds: list[Round]) -> bool:
    """Whether the value is what the candidate claimed; else it is the judge's own reading."""
    return all(each.claimed for each in rounds)


def interval_of(rounds: list[Round]) -> Interval:
    """The value of all rounds together; VerdictError when a claim was not confirmed.

    Neither is a window which ended sooner than that of a kernel which does nothing.
    """
    seen = fmean(each.bound for each in rounds)
    resolution_ns = max(FLOOR_NS, _published(rounds))
    if seen < -resolution_ns:
        raise VerdictError(
            Verdict.TIMING_REJECTED,
            f"the judge had its answers {-seen / 1e3:.2f} us sooner than those of a kernel that"
            f" does nothing, which is more than its resolution of {resolution_ns / 1e3:.2f} us",
        )
    return device_interval(rounds) if claimed(rounds) else host_interval(rounds)


def narrow(rounds: list[Round], relative: float) -> bool:
    """Whether the interval is as narrow as is wanted, or `NARROW_NS` where the value is a claim."""
    interval = interval_of(rounds)
    wanted = relative * interval.centre
    if claimed(rounds):
        wanted = max(wanted, NARROW_NS)
    return len(rounds) > 1 and interval.half_width <= wanted


def measurement(rounds: list[Round], stop: StopReason) -> Measurement:
    """What the rounds say together; VerdictError when a claim was not confirmed."""
    interval = interval_of(rounds)
    by_claim = claimed(rounds)
    own = [[w - each.overhead for w in each.windows] for each in rounds]
    samples = [each.claims for each in rounds] if by_claim else own
    return Measurement(
        time_ns=interval.centre,
        half_width_ns=interval.half_width,
        bound_ns=confirmed(rounds) if by_claim else fmean(each.bound for each in rounds),
        resolution_ns=max(FLOOR_NS, _published(rounds)),
        rounds=len(rounds),
        samples=tuple(tuple(values) for values in samples),
        discarded=sum(each.discarded for each in rounds),
        stop_reason=stop,
        claimed_ns=interval.centre if by_claim else None,
    )
