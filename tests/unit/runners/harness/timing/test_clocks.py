import math
from statistics import fmean, median

import pytest

from runners.contract.comparison import FLOOR_NS, Ratio
from runners.contract.evaluation import StopReason
from runners.contract.verdict import Verdict
from runners.harness.timing.clocks import (
    CREDIBLE,
    HONEST,
    HONEST_NS,
    LIFT,
    LIFT_NS,
    TRAIN_GAP_NS,
    VARIED,
    VARIED_NS,
    below_floor,
    claim_resolution,
    device_interval,
    device_resolution,
    host_interval,
    interval_of,
    is_confirmed,
    is_narrow,
    measurement,
    publishes_claims,
    resolution,
    with_unseen,
)
from runners.harness.timing.intervals import t_quantile
from runners.harness.timing.rounds import HIDDEN_NS, SHORT_NS, Round, Trains
from runners.harness.verdicts import VerdictError
from tests.unit.runners.harness.timed import MS, make_round


def test_a_claim_may_be_wrong_by_as_much_as_could_be_skipped() -> None:
    rounds = [make_round() for _ in range(2)]
    rounds[0].remote = True

    assert device_resolution(rounds) == pytest.approx(resolution(rounds) + HIDDEN_NS + 0.05 * MS)


def test_a_claim_that_is_too_low_by_no_more_than_could_be_skipped_is_raised() -> None:
    rounds = [make_round(claim=0.93 * MS) for _ in range(2)]
    with pytest.raises(VerdictError):
        device_interval(rounds)
    for each in rounds:
        each.remote = True

    assert device_interval(rounds).centre == pytest.approx((1 - HONEST) * MS)
    assert make_round().bound == pytest.approx(1.0 * MS) == rounds[0].bound  # it stays what it was


def test_the_resolution_grows_with_noise_within_rounds() -> None:
    quiet, noisy = [make_round(noise=1.0)] * 4, [make_round(noise=100.0)] * 4

    assert resolution(noisy) == pytest.approx(100 * resolution(quiet))


def test_the_resolution_sees_differences_between_rounds() -> None:
    assert resolution([make_round(), make_round(window=1.2 * MS)]) == pytest.approx(0.15 * MS)


def test_drift_that_averages_out_costs_no_resolution() -> None:
    up, down = (
        make_round(overheads_during=0.2 * MS, overheads_before=0.1 * MS),
        make_round(0.1 * MS + MS, 0.1 * MS),
    )
    down.overheads_before = [0.2 * MS] * 5
    down.own_overheads = [0.2 * MS] * 5

    assert resolution([up, down]) < resolution([up, up]) + 0.1 * MS
    assert resolution([up, up]) == pytest.approx(0.1 * MS)


def test_nothing_on_the_cpu_counts_as_less_than_the_floor() -> None:
    assert host_interval([make_round(window=0.1 * MS)] * 3).centre == FLOOR_NS


def test_what_the_candidate_claims_on_the_cpu_is_not_used() -> None:
    lied, told = (
        measurement([make_round(claim=claim)] * 3, StopReason.PRECISE) for claim in (1.0, 1.0 * MS)
    )

    assert lied == told
    assert lied.claimed_ns is None


def test_a_confirmed_claim_on_a_gpu_is_the_value() -> None:
    found = device_interval([make_round(claim=0.999 * MS)] * 3)

    assert found.centre == pytest.approx(0.999 * MS)


def test_a_claim_below_the_bound_is_rejected_with_both_numbers() -> None:
    with pytest.raises(
        VerdictError, match=r"says 900\.00 µs, but the judge measured 1000\.00"
    ) as no:
        device_interval([make_round(claim=0.9 * MS)] * 3)

    assert no.value.verdict is Verdict.TIMING_REJECTED


def test_a_claim_within_the_resolution_is_believed() -> None:
    claim = 1.0 * MS - HIDDEN_NS / 2

    assert device_interval([make_round(claim=claim)] * 3).centre == pytest.approx(claim)


def test_a_claim_just_beyond_the_resolution_is_rejected() -> None:
    with pytest.raises(VerdictError):
        device_interval([make_round(claim=1.0 * MS - HIDDEN_NS - 1)] * 3)


def test_a_claim_of_nothing_is_rejected_even_where_the_bound_is_nothing() -> None:
    with pytest.raises(VerdictError):
        device_interval([make_round(window=0.1 * MS, claim=0.0)] * 3)


@pytest.mark.parametrize("count", [1, 3])
def test_a_claim_of_nothing_in_one_call_is_rejected_whatever_the_others_are(count: int) -> None:
    rounds = [make_round(claim=1.1 * MS) for _ in range(count)]
    rounds[0].claims[0] = 0.0

    with pytest.raises(VerdictError) as no:
        device_interval(rounds)

    assert no.value.verdict is Verdict.TIMING_REJECTED


@pytest.mark.parametrize("tiny", [5e-324, 1e-40, 0.5])
def test_a_claim_below_the_least_is_rejected_however_long_the_others_are(
    tiny: float,
) -> None:
    rounds = [gpu_round(claim=each, bound=5 * MS) for each in (1e15, tiny)]
    with pytest.raises(VerdictError) as caught:
        measurement(rounds, StopReason.PRECISE)
    assert caught.value.verdict is Verdict.TIMING_REJECTED


def test_a_measurement_tells_how_many_calls_were_repeated() -> None:
    rounds = [make_round(), make_round()]
    rounds[0].discarded, rounds[1].discarded = 1, 2

    assert measurement(rounds, StopReason.PRECISE).discarded == 3


def test_the_resolution_on_a_gpu_counts_the_idle_gaps() -> None:
    rounds = [make_round()] * 2

    assert device_resolution(rounds) == resolution(rounds) + HIDDEN_NS


def test_claims_are_the_value_only_where_every_round_was_called_ahead() -> None:
    ahead, waiting = (make_round(claim=1.05 * MS, claimed=each) for each in (True, False))

    assert interval_of([ahead] * 2).centre == pytest.approx(1.05 * MS)
    assert interval_of([waiting] * 2).centre == pytest.approx(1.0 * MS)
    assert interval_of([ahead, waiting]).centre == pytest.approx(1.0 * MS)
    assert [publishes_claims(each) for each in ([ahead] * 2, [waiting] * 2, [ahead, waiting])] == [
        True, False, False,
    ]  # fmt: skip


def test_a_gpu_whose_calls_were_not_ahead_is_read_by_the_judges_own_clock() -> None:
    lied = [make_round(claim=1.0, overheads_before=0.1 * MS) for _ in range(2)]

    found = measurement(lied, StopReason.ROUND_CAP)

    assert found.time_ns == pytest.approx(1.0 * MS)
    assert found.claimed_ns is None
    assert found.samples[0] == pytest.approx([1.0 * MS] * 5)
    assert found.resolution_ns == resolution(lied) + HIDDEN_NS  # which is hidden from both clocks


def test_a_measurement_keeps_every_sample_and_both_clocks() -> None:
    rounds = [make_round(claim=claim * MS, claimed=True) for claim in (1.05, 1.06)]

    found = measurement(rounds, StopReason.ROUND_CAP)

    assert found.samples == tuple(tuple(each.claims) for each in rounds)
    assert found.claimed_ns == found.time_ns == pytest.approx(1.055 * MS, rel=1e-4)
    assert found.bound_ns == pytest.approx(1.0 * MS)
    assert found.resolution_ns == device_resolution(rounds)
    assert (found.rounds, found.stop_reason) == (2, StopReason.ROUND_CAP)


def test_samples_on_the_cpu_are_windows_less_the_overhead() -> None:
    found = measurement([make_round()] * 2, StopReason.PRECISE)

    assert found.samples[0] == pytest.approx([1.0 * MS] * 5)
    assert found.resolution_ns >= FLOOR_NS


def test_what_answering_costs_may_be_hidden_on_the_cpu_and_is_published() -> None:
    rounds = [make_round(on_gpu=False) for _ in range(2)]
    for each in rounds:
        each.calibration_cpu_ns = [150_000.0] * 5

    found = measurement(rounds, StopReason.PRECISE)

    assert found.resolution_ns == 150_000.0


def gpu_round(claim: float, bound: float, overhead: float = 500_000.0) -> Round:
    """A round on a steady GPU: its resolution is the idle gap."""
    return Round(
        on_gpu=True,
        windows=[overhead + bound] * 9,
        claims=[claim] * 9,
        overheads_during=[overhead] * 9,
        overheads_before=[overhead] * 9,
        own_overheads=[overhead] * 9,
        claimed=True,
    )


BOUND = 28_000.0


@pytest.mark.parametrize(
    ("claim", "published"),
    [
        (BOUND + 2_000.0, BOUND + 2_000.0),
        (BOUND - HONEST_NS + 1, BOUND - HONEST_NS + 1),
        (BOUND - HONEST_NS - 1, BOUND - HONEST_NS),
        (BOUND - HIDDEN_NS + 1, BOUND - HONEST_NS),
    ],
)
@pytest.mark.parametrize("remote", [False, True])
def test_a_claim_further_below_its_bound_than_honest_ones_is_raised(
    *, claim: float, published: float, remote: bool
) -> None:
    timed = gpu_round(claim, BOUND)
    timed.remote = remote
    found = measurement([timed] * 5, StopReason.PRECISE)
    assert found.time_ns == pytest.approx(published)
    assert found.claimed_ns == pytest.approx(claim)
    assert found.lifted == (claim < published)
    assert is_confirmed([timed] * 5) != found.lifted


def spread_by(part: str, width: float, claim: float, bound: float = BOUND) -> list[Round]:
    """Rounds in which one kind of window varies by up to that much to either side."""
    rounds = [gpu_round(claim, bound) for _ in range(5)]
    for each in rounds:
        windows = getattr(each, part)
        windows[:] = [w + step * width / 4 for step, w in enumerate(windows, -4)]
    return rounds


def test_the_claim_of_a_long_kernel_may_lie_further_below_its_bound() -> None:
    bound = 100_000.0
    least = bound - HONEST * bound

    assert HONEST * bound > HONEST_NS
    assert is_confirmed([gpu_round(least + 1, bound)] * 5)
    assert not is_confirmed([gpu_round(least - 1, bound)] * 5)


def test_noise_leaves_as_much_room_for_a_claim_as_the_resolution_is_wide() -> None:
    rounds = spread_by("windows", 400.0, BOUND - HONEST_NS - 1)

    assert resolution(rounds) == claim_resolution(rounds) > 1.0
    assert is_confirmed(rounds)


@pytest.mark.parametrize("bound", [BOUND, 100 * BOUND])
def test_windows_that_vary_hardly_widen_the_resolution_of_a_claim(bound: float) -> None:
    varied = max(VARIED_NS, VARIED * bound)
    for claim in (2, -2):
        honest = max(HONEST_NS, HONEST * bound)
        rounds = spread_by("windows", 0.9 * bound, bound - honest - varied + claim, bound)
        assert is_confirmed(rounds) == (claim > 0)
        assert resolution(rounds) > 2 * varied
        assert device_resolution(rounds) == pytest.approx(varied + HIDDEN_NS)


def test_who_is_slow_in_some_rounds_cannot_claim_to_be_fast_in_all() -> None:
    rounds = [gpu_round(2_000.0, BOUND * (10 if index == 0 else 1)) for index in range(15)]

    assert resolution(rounds) > fmean(each.bound for each in rounds)
    with pytest.raises(VerdictError) as no:
        device_interval(rounds)
    assert no.value.verdict is Verdict.TIMING_REJECTED


@pytest.mark.parametrize("low", [3, 8])
def test_tiny_claims_in_some_rounds_are_not_offset_by_those_of_others(
    low: int,
) -> None:
    """The value is a geometric mean: by an arithmetic one these claims are above the bound."""
    rounds = [gpu_round(1.0 if index < low else 10 * BOUND, BOUND) for index in range(15)]

    assert fmean(median(each.claims) for each in rounds) > BOUND
    with pytest.raises(VerdictError) as no:
        device_interval(rounds)
    assert no.value.verdict is Verdict.TIMING_REJECTED


@pytest.mark.parametrize("part", ["own_overheads", "overheads_before"])
def test_what_the_trusted_windows_vary_by_counts_in_full(part: str) -> None:
    rounds = spread_by(part, 20_000.0, BOUND)

    assert claim_resolution(rounds) == resolution(rounds) > 2 * VARIED_NS


def test_an_honest_kernel_that_varies_is_believed() -> None:
    rounds = spread_by("windows", 20_000.0, BOUND)
    for each in rounds:
        each.claims = [w - each.overhead - 500.0 for w in each.windows]

    assert is_confirmed(rounds)
    assert device_interval(rounds).centre < BOUND


def test_a_machine_that_grew_faster_is_less_resolved_as_well() -> None:
    faster = make_round(overheads_during=0.1 * MS, overheads_before=0.3 * MS)

    assert resolution([faster] * 2) == pytest.approx(0.2 * MS)


def test_a_time_well_under_what_the_card_allows_is_for_audit_with_both_numbers() -> None:
    least = 100_000.0

    assert below_floor(CREDIBLE * least, least) is None
    found = below_floor(CREDIBLE * least - 1, least)
    assert found is not None
    assert found.verdict is Verdict.AUDIT
    assert "95.00 µs is less than the 100.00 µs" in found.message


def test_what_no_least_time_is_known_of_is_never_too_fast() -> None:
    assert below_floor(0.0, None) is None


WANTED = 0.005


def two_rounds(value: float, half_width: float, *, claimed: bool) -> list[Round]:
    """Two rounds whose interval is as wide as that on either side, in ns."""
    off = math.exp(math.log1p(half_width / value) / t_quantile(1))
    rounds = [gpu_round(each, each) for each in (value / off, value * off)]
    for each in rounds:
        each.claimed = claimed
    return rounds


@pytest.mark.parametrize(
    ("value", "half_width"),
    [(1_000.0, 250.0), (20_000.0, 250.0), (49_000.0, 250.0), (51_000.0, 255.0), (1e6, 5_000.0)],
)
def test_a_claim_on_a_gpu_is_narrow_by_its_length_or_by_what_rounds_differ_in_anyway(
    value: float, half_width: float
) -> None:
    assert is_narrow(two_rounds(value, 0.99 * half_width, claimed=True), WANTED)
    assert not is_narrow(two_rounds(value, 1.01 * half_width, claimed=True), WANTED)


@pytest.mark.parametrize("value", [5_000.0, 20_000.0, 30_000.0])
def test_what_the_judges_own_clock_tells_has_to_be_as_narrow_however_short_it_is(
    value: float,
) -> None:
    assert is_narrow(two_rounds(value, 0.99 * WANTED * value, claimed=False), WANTED)
    assert not is_narrow(two_rounds(value, 1.01 * WANTED * value, claimed=False), WANTED)


def test_one_claim_of_two_is_none() -> None:
    rounds = two_rounds(5_000.0, 200.0, claimed=True)
    assert is_narrow(rounds, WANTED)
    rounds[0].claimed = False
    assert not is_narrow(rounds, WANTED)


@pytest.mark.parametrize("claimed", [True, False])
def test_one_round_is_never_narrow_however_little_its_samples_differ(*, claimed: bool) -> None:
    rounds = two_rounds(30_000.0, 0.0, claimed=claimed)

    assert is_narrow(rounds, WANTED)
    assert not is_narrow(rounds[:1], WANTED)


@pytest.mark.parametrize("on_gpu", [True, False])
@pytest.mark.parametrize("claimed_too", [True, False])
def test_a_bound_below_minus_its_resolution_never_passes(
    *, on_gpu: bool, claimed_too: bool
) -> None:
    """The window ended sooner than that of a kernel which does nothing."""
    short = 0.1 * MS - HIDDEN_NS - 2_000.0

    def rounds(window: float) -> list[Round]:
        return [
            make_round(window=window, claim=1.0, on_gpu=on_gpu, claimed=on_gpu and claimed_too)
            for _ in range(3)
        ]

    with pytest.raises(
        VerdictError, match="sooner than those of a kernel that does nothing"
    ) as ruling:
        measurement(rounds(short), StopReason.PRECISE)

    assert ruling.value.verdict is Verdict.TIMING_REJECTED
    assert measurement(rounds(0.1 * MS - 500.0), StopReason.PRECISE).time_ns <= FLOOR_NS


def test_a_slow_round_does_not_make_up_for_one_that_is_too_fast() -> None:
    """The mean of the bounds is 23 us, and that of the times no less than 1 us each is 14."""
    windows = [0.1 * MS + bound * 1e3 for bound in (-30, 50, 50)]
    rounds = [make_round(window=each, claim=14e3, claimed=True) for each in windows]

    with pytest.raises(VerdictError, match=r"came 30\.00 µs sooner"):
        interval_of(rounds)


def test_telling_an_answer_counts_into_the_value_and_into_the_resolution() -> None:
    rounds = [make_round(window=0.4 * MS) for _ in range(3)]
    for each in rounds:
        each.host_waits_ns = [0.2 * MS] * 5

    found = measurement(rounds, StopReason.PRECISE)

    assert found.time_ns == found.bound_ns == pytest.approx(0.3 * MS)
    assert found.resolution_ns >= 0.2 * MS


US = 1e3


def trained(claim: float, bound: float, noise: float = 0.0) -> Round:
    """A round of trains whose calibration kernel takes 8 µs of a window of 300."""
    spread = [noise * each for each in range(-15, 16)]
    result = make_round(claimed=True)
    result.could_train = True
    result.claims = [claim + each for each in spread]
    result.trains = Trains(
        calibration_windows=[300 * US] * 31,
        calibration_claims=[8 * US] * 31,
        windows=[292 * US + bound + each for each in spread],
        claims=result.claims,
    )
    return result


def test_a_short_kernels_claim_counts_as_far_as_the_judges_own_value_allows() -> None:
    honest = [trained(6 * US, 6.2 * US), trained(6 * US, 6.2 * US)]
    assert interval_of(honest).centre == pytest.approx(6 * US)
    low = [trained(5.2 * US, 6 * US), trained(5.2 * US, 6 * US)]
    assert interval_of(low).centre == pytest.approx(6 * US - LIFT_NS)
    lying = [trained(2.8 * US, 6 * US), trained(2.8 * US, 6 * US)]
    found = measurement(lying, StopReason.PRECISE)
    assert found.claimed_ns == pytest.approx(2.8 * US)
    assert found.bound_ns == found.time_ns == pytest.approx(6 * US)


def test_claims_of_trains_with_two_values_are_averaged() -> None:
    def claimed(fast: int) -> float:
        rounds = [trained(6 * US, 6 * US) for _ in range(2)]
        for each in rounds:
            each.claims = [5.6 * US] * fast + [6.3 * US] * (31 - fast)
        return interval_of(rounds).centre

    assert claimed(15) - claimed(16) == pytest.approx(0.7 * US / 25, rel=0.01)


def test_what_is_lifted_grows_with_a_short_kernels_time_alone() -> None:
    short, long = [trained(14 * US, 15 * US)] * 2, [trained(498 * US, 500 * US)] * 2
    assert interval_of(short).centre == pytest.approx(15 * US * (1 - LIFT))
    assert interval_of(long).centre == pytest.approx(500 * US - LIFT * SHORT_NS)


def test_trains_never_say_less_than_single_calls_can_hide() -> None:
    by_copies = [trained(1 * US, 0.5 * US) for _ in range(2)]
    for each in by_copies:
        assert each.trains is not None
        each.trains.least = 4 * US
    assert interval_of(by_copies).centre == pytest.approx(4 * US)


def test_trains_that_last_for_a_time_slice_say_no_more_than_single_calls() -> None:
    beside_copies = [trained(8 * US, 2_093 * US) for _ in range(2)]
    for each in beside_copies:
        assert each.trains is not None
        each.trains.most = 12 * US
    assert interval_of(beside_copies).centre == pytest.approx(12 * US)


def test_the_resolution_of_trains_is_noise_and_what_a_claim_may_be_below() -> None:
    quiet, noisy = [trained(6 * US, 6 * US)] * 2, [trained(6 * US, 6 * US, noise=50.0)] * 2
    assert device_resolution(quiet) == pytest.approx(TRAIN_GAP_NS + LIFT_NS)
    assert device_resolution(noisy) > device_resolution(quiet) + 100


def test_a_claim_of_nothing_is_rejected_in_trains_too() -> None:
    with pytest.raises(VerdictError) as refused:
        interval_of([trained(0.0, 6 * US)] * 2)
    assert refused.value.verdict is Verdict.TIMING_REJECTED


def test_who_refuses_trains_counts_with_what_its_windows_could_hide() -> None:
    rounds = [make_round(window=0.1 * MS + 6 * US) for _ in range(2)]
    assert host_interval(rounds).centre == pytest.approx(6 * US)
    for each in rounds:
        each.could_train = True
    assert host_interval(rounds).centre == pytest.approx(6 * US + HIDDEN_NS)
    longer = [make_round(window=0.1 * MS + 30 * US) for _ in range(2)]
    for each in longer:
        each.could_train = True
    assert host_interval(longer).centre == pytest.approx(30 * US)


@pytest.mark.parametrize(
    ("time_ns", "could_train", "unseen"),
    [
        (10_000.0, False, HIDDEN_NS / 10_000),
        (10_000.0, True, 0.0),  # the time has it already
        (27_000.0, True, HIDDEN_NS / 27_000),  # two equal ones were told 0.86 apart
        (1.0 * MS, False, HIDDEN_NS / MS),
    ],
)
def test_on_a_gpu_a_comparison_without_trains_has_what_windows_can_hide(
    time_ns: float, unseen: float, *, could_train: bool
) -> None:
    rounds = [make_round(window=time_ns + 0.1 * MS) for _ in range(2)]
    for each in rounds:
        each.could_train = could_train
    assert rounds[0].bound == pytest.approx(time_ns)
    found = Ratio(ratio=0.9, half_width=0.01, rounds=2)
    seen = with_unseen(found, rounds, rounds)
    assert (seen.unseen, seen.half_width) == pytest.approx((unseen, 0.01 + unseen), rel=1e-3)


def test_on_a_gpu_a_comparison_has_the_host_part_of_an_output_that_a_kernel_could_skip() -> None:
    rounds = [make_round(window=1.1 * MS) for _ in range(2)]
    for each in rounds:
        each.host_waits_ns = [0.02 * MS] * 3
    seen = with_unseen(Ratio(ratio=0.9, half_width=0.01, rounds=2), rounds, rounds)
    assert seen.unseen == pytest.approx(0.12 + HIDDEN_NS / MS, rel=1e-2)


def test_trains_hide_nothing_in_a_comparison() -> None:
    rounds = [make_round() for _ in range(2)]
    for each in rounds:
        each.trains = Trains([10_000.0] * 3, [5_000.0] * 3, [12_000.0] * 3, [7_000.0] * 3)
    assert with_unseen(Ratio(ratio=0.9, half_width=0.01, rounds=2), rounds, rounds).unseen == 0
