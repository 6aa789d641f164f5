"""Pure functions that turn the raw windows and claims of rounds into confirmed times."""

import math
from collections.abc import Iterable
from statistics import fmean, stdev

from runners.contract.comparison import FLOOR_NS, Ratio
from runners.contract.evaluation import Measurement, StopReason
from runners.contract.verdict import Verdict
from runners.harness.timing import cpu_times
from runners.harness.timing.intervals import Interval, log_interval, rounds_interval, t_quantile
from runners.harness.timing.rounds import HIDDEN_NS, SHORT_NS, Round, Trains, trimmed
from runners.harness.verdicts import VerdictError

HONEST_NS = 2_000.0
HONEST = 0.025
"""The most by which the claim of an honest kernel is below its bound, beyond the noise: in
nanoseconds, or as a fraction of the bound if that is more.

An honest kernel may leave less of its output in the cache than the calibration did, and its writes
to temporary tensors may still be in flight at its end event: 4.1 to 4.3 us of 150 to 163 us in
`tests/gpu/popcorn.py`, whose kernel makes thirty launches.
"""

VARIED_NS = 1_000.0
VARIED = 0.005
"""The most that noise in a candidate's own windows adds to the resolution of a claim on a GPU: in
nanoseconds, or as a fraction of its bound if that is more.

Windows and claims of honest calls vary together, so the distance of their medians stays the same.
Without this limit, a candidate that varies its windows on purpose could get any claim accepted.
"""

CREDIBLE = 0.95
"""A time below this fraction of the least time at the card's nominal rates goes to `audit`."""

NARROW_NS = 250.0
"""The half-width at which the interval of a claim on a GPU is narrow enough for any kernel.

The medians of rounds differ by about 180 ns whatever the kernel's length, because they depend on
the addresses of a candidate's memory. A claim is confirmed only to about 4 us. Further rounds to
time a kernel of 5 us to 0.5 % would be wasted.
"""

CLAIM_LEAST_NS = 1.0
"""The least claim in ns: claims that differ by too large a factor have no finite interval."""

TRAIN_GAP_NS = 800.0
"""By how much in ns an honest claim may exceed the judge's own value of trains.

The candidate's two time stamps are in its claim, but not in the windows: up to 0.7 us
(`tests/gpu/trains.py`).
"""
LIFT_NS = 200.0
LIFT = 0.03
"""By how much a claim may be below the judge's own value of trains: in nanoseconds, or as a
fraction of that value (at most of `SHORT_NS`) if that is more. A lower claim is raised to that.

Honest kernels claim at most that much less (`tests/gpu/trains.py`).
"""
FALSE_CLAIM = 5
"""A claim that is below the judge's own value by more than this many times that limit is false. The
judge's value is then published.
"""


def by_trains(rounds: list[Round]) -> bool:
    """Whether all rounds were timed by trains."""
    return all(each.trains is not None for each in rounds)


def train_interval(rounds: list[Round]) -> Interval:
    """The published time of a short kernel.

    That is its claim, or the judge's value less `_lift` if the claim is lower. For a false claim it
    is the judge's value. VerdictError if any claim is below `CLAIM_LEAST_NS`.
    """
    if any(each < CLAIM_LEAST_NS for timed in rounds for each in timed.claims):
        raise _rejected(0.0, rounds)
    claimed, bound = _claimed_interval(rounds), combined_bound(rounds)
    least = bound - _lift(bound)
    if claimed.centre >= least:
        return claimed
    if claimed.centre < bound - FALSE_CLAIM * _lift(bound):
        least = bound
    return Interval(max(FLOOR_NS, least), _bound_interval(rounds).half_width)


def train_resolution(rounds: list[Round]) -> float:
    """The most in ns by which a time of trains can be too low without detection."""
    bound = combined_bound(rounds)
    return _noise(rounds) + TRAIN_GAP_NS + _lift(bound)


def _lift(bound: float) -> float:
    return max(LIFT_NS, LIFT * min(bound, SHORT_NS))


def resolution(rounds: list[Round]) -> float:
    """The uncertainty of the bound over all rounds: three standard errors plus the drift."""
    return _noise(rounds) + _drift(rounds)


def _noise(rounds: list[Round]) -> float:
    """Three standard errors: the larger of those within rounds and those between rounds."""
    within = _combined_error([each.error for each in rounds])
    bounds = [each.bound for each in rounds]
    between = stdev(bounds) / math.sqrt(len(bounds)) if len(bounds) > 1 else 0.0
    return 3 * max(within, between)


def _on_gpu(rounds: list[Round]) -> bool:
    return any(each.on_gpu for each in rounds)


def _combined_error(errors: list[float]) -> float:
    """The standard error of the mean of all rounds, from the standard errors of each."""
    return math.sqrt(fmean(error**2 for error in errors) / len(errors))


def _drift(rounds: list[Round]) -> float:
    return abs(fmean(each.drift for each in rounds))


def claim_resolution(rounds: list[Round]) -> float:
    """The most by which bound and claim may differ by chance; `VARIED` limits the noise in it."""
    trusted = 3 * _combined_error([each.trusted_error for each in rounds])
    varied = max(VARIED_NS, VARIED * fmean(each.bound for each in rounds))
    return min(_noise(rounds), trusted + varied) + _drift(rounds)


def own_value(timed: Round) -> float:
    """The time of one round in ns by the judge's own clock, whatever the candidate claims.

    The time of a short kernel that was not timed by trains includes all that its windows could
    hide. On the CPU it includes what a candidate could gain by the calls that were left out.
    """
    return _least_value(timed) + (HIDDEN_NS if _refused_trains(timed) else 0.0)


def _least_value(timed: Round) -> float:
    return max(FLOOR_NS, timed.bound + timed.choosable)


def _refused_trains(timed: Round) -> bool:
    """Whether a short kernel was not timed by trains, although it could have been."""
    return timed.could_train and timed.trains is None and _least_value(timed) < SHORT_NS


def with_unseen(found: Ratio, ours: list[Round], theirs: list[Round]) -> Ratio:
    """Return a ratio of two kernels with what the windows of the faster one could hide.

    Only work of the kernel that looks faster can make them look further apart than they are. So the
    two are tied if their times differ by no more than that, whichever of them it is. What
    `own_value` has of it is not added again.
    """
    faster = ours if found.ratio < 1 else theirs
    hidden_ns = fmean(_unseen(each) for each in faster)
    unseen = hidden_ns / log_interval([own_value(each) for each in theirs]).centre
    return found.model_copy(update={"half_width": found.half_width + unseen, "unseen": unseen})


def _unseen(timed: Round) -> float:
    hides = timed.on_gpu and timed.trains is None and not _refused_trains(timed)
    return timed.skippable + (HIDDEN_NS if hides else 0.0)


def host_interval(rounds: list[Round]) -> Interval:
    """The published time by the judge's clock; on a GPU the mean of the bounds, its t interval.

    `HIDDEN_NS` is added for a short kernel that could have been timed by trains but was not.
    Otherwise a candidate could refuse trains in order to hide work in its windows.
    """
    if not _on_gpu(rounds):
        return cpu_times.time_interval(rounds)
    bounds = [each.bound for each in rounds]
    centre = max(FLOOR_NS, fmean(bounds))
    if centre < SHORT_NS and any(each.could_train and each.trains is None for each in rounds):
        centre += HIDDEN_NS
    if len(bounds) < 2:
        return Interval(centre, 2 * rounds[0].error)
    return Interval(centre, t_quantile(len(bounds) - 1) * stdev(bounds) / math.sqrt(len(bounds)))


def device_interval(rounds: list[Round]) -> Interval:
    """The published time on a GPU: the candidate's claim, raised to `_least_confirmed` if lower.

    VerdictError if the claim is below `bound - resolution`, or any claim below `CLAIM_LEAST_NS`.
    What is compared with the bound is the published time itself. If it were another mean of the
    claims, uneven claims could pass the check and still give a shorter published time.
    """
    if any(each < CLAIM_LEAST_NS for timed in rounds for each in timed.claims):
        raise _rejected(0.0, rounds)
    claimed = _claimed_interval(rounds)
    if claimed.centre < combined_bound(rounds) - device_resolution(rounds):
        raise _rejected(claimed.centre, rounds)
    if is_confirmed(rounds):
        return claimed
    return Interval(_least_confirmed(rounds), _bound_interval(rounds).half_width)


def is_confirmed(rounds: list[Round]) -> bool:
    """Whether a claim of single calls is no further below its bound than an honest kernel's."""
    return _claimed_interval(rounds).centre >= _least_confirmed(rounds)


def _least_confirmed(rounds: list[Round]) -> float:
    bound = combined_bound(rounds)
    return bound - max(HONEST_NS, HONEST * bound) - claim_resolution(rounds)


def _bound_interval(rounds: list[Round]) -> Interval:
    return rounds_interval([[max(FLOOR_NS, each.bound)] for each in rounds])


def _claimed_interval(rounds: list[Round]) -> Interval:
    """The interval of the claims: of each round's median, or with trains of its trimmed mean.

    The claims of a train have two values 0.7 us apart, depending on how full the driver's queue
    is, and the median can be either of them.
    """
    if by_trains(rounds) and len(rounds) > 1:
        return log_interval([fmean(trimmed(each.claims)) for each in rounds])
    return rounds_interval([each.claims for each in rounds])


def combined_bound(rounds: list[Round]) -> float:
    """The bound over all rounds: a geometric mean, like that of the claims."""
    return math.exp(fmean(math.log(max(FLOOR_NS, each.bound)) for each in rounds))


def _rejected(claim: float, rounds: list[Round]) -> VerdictError:
    return VerdictError(
        Verdict.TIMING_REJECTED,
        f"the candidate's clock says {claim / 1e3:.2f} µs, but the judge measured"
        f" {combined_bound(rounds) / 1e3:.2f} µs ± {device_resolution(rounds) / 1e3:.2f}",
    )


def below_floor(value: float, floor: float | None) -> VerdictError | None:
    """The verdict `audit` for a time below `CREDIBLE` times the floor, both in ns, or None."""
    if floor is None or value >= CREDIBLE * floor:
        return None
    return VerdictError(
        Verdict.AUDIT,
        f"{value / 1e3:.2f} µs is less than the {floor / 1e3:.2f} µs which this GPU needs at its"
        " nominal rates for the bytes and operations of the task",
    )


def device_resolution(rounds: list[Round]) -> float:
    """The most in ns by which a claim on a GPU can be too low without detection."""
    if by_trains(rounds):
        return train_resolution(rounds)
    return claim_resolution(rounds) + _hidden_ns(rounds)


def _published_resolution(rounds: list[Round]) -> float:
    """The published resolution; includes what a window can hide, whichever clock decides.

    On the CPU the half-width has all of the noise.
    """
    if publishes_claims(rounds):
        return device_resolution(rounds)
    unseen = resolution(rounds) if _on_gpu(rounds) else _drift(rounds)
    return unseen + _hidden_ns(rounds)


def _hidden_ns(rounds: list[Round]) -> float:
    """The most time of a kernel that its windows and the calls left out can hide."""
    gap = HIDDEN_NS if any(each.on_gpu for each in rounds) else 0.0
    return gap + fmean(each.skippable + each.choosable for each in rounds)


def publishes_claims(rounds: list[Round]) -> bool:
    """Whether the published time is the candidate's claim; otherwise it is by the judge's clock."""
    return all(each.claimed for each in rounds)


def interval_of(rounds: list[Round]) -> Interval:
    """The published time over all rounds.

    VerdictError if a claim is not confirmed, or if outputs came sooner than those of a no-op.
    """
    bound = fmean(each.bound for each in rounds)
    noise = 0.0 if _on_gpu(rounds) else _noise(rounds)
    resolution_ns = max(FLOOR_NS, _published_resolution(rounds) + noise)
    if _on_gpu(rounds):  # a slow round does not make up for one that is too fast
        bound = min(bound, *(each.bound + 3 * each.error for each in rounds))
    if bound < -resolution_ns:
        raise VerdictError(
            Verdict.TIMING_REJECTED,
            f"the outputs came {-bound / 1e3:.2f} µs sooner than those of a kernel that does"
            f" nothing, which is more than the judge's resolution of {resolution_ns / 1e3:.2f} µs",
        )
    if by_trains(rounds):
        return train_interval(rounds)
    return device_interval(rounds) if publishes_claims(rounds) else host_interval(rounds)


def is_narrow(rounds: list[Round], relative: float) -> bool:
    """Whether the interval is narrow enough; for a claim, `NARROW_NS` always is."""
    if not _on_gpu(rounds):
        return len(rounds) > 1 and cpu_times.relative_half_width(rounds) <= relative
    interval = interval_of(rounds)
    wanted = relative * interval.centre
    if publishes_claims(rounds):
        wanted = max(wanted, NARROW_NS)
    return len(rounds) > 1 and interval.half_width <= wanted


def measurement(rounds: list[Round], stop: StopReason, *, missed: bool = False) -> Measurement:
    """The result of all rounds, which `missed` the reference or did not.

    VerdictError if a claim is not confirmed.
    """
    interval = interval_of(rounds)
    by_claim = publishes_claims(rounds)
    bound = fmean(each.bound for each in rounds) if _on_gpu(rounds) else interval.centre
    net_windows = [[window - each.overhead for window in each.windows] for each in rounds]
    samples = [each.claims for each in rounds] if by_claim else net_windows
    return Measurement(
        time_ns=interval.centre,
        half_width_ns=interval.half_width,
        bound_ns=combined_bound(rounds) if by_claim else bound,
        resolution_ns=max(FLOOR_NS, _published_resolution(rounds)),
        rounds=len(rounds),
        samples=tuple(tuple(values) for values in samples),
        discarded=sum(each.discarded for each in rounds),
        left_out=sum(len(each.left_out) for each in rounds),
        vs_reference=cpu_times.ratio_to_reference(rounds),
        reference_missed=missed,
        stop_reason=stop,
        claimed_ns=_claimed_interval(rounds).centre if by_claim else None,
    )


def share_calibration(trains: Iterable[Trains | None]) -> None:
    """Use the mean of the calibration kernel's times for all candidates with trains.

    It varies by 0.16 us between candidates, and a difference of two windows does not contain that.
    So the ratios of single pairs vary by 3.0 % for a kernel of 10 us; without this, by 3.9 %.
    """
    if found := [each for each in trains if each is not None]:
        mean = fmean(each.calibration_claim for each in found)
        for each in found:
            each.calibration_ns = mean
