"""What one round of timed calls says by itself."""

import pytest

from runners.contract.verdict import Verdict
from runners.harness.timing.rounds import (
    DISCARDS_MOST,
    DISTURBED_NS,
    DRIFT_HOSTED_NS,
    DRIFT_MOST_NS,
    QUICKER_ECHO_NS,
    DisturbedError,
    Round,
)
from runners.harness.timing.stopwatch import HOST_CALIBRATIONS
from runners.harness.verdicts import VerdictError
from tests.unit.runners.harness.timed import MS, make_round


def test_the_bound_is_the_window_less_the_overhead() -> None:
    assert make_round(5.0, 2.0).bound == 3.0


def test_a_disturbed_calibration_gains_nothing() -> None:
    honest, disturbing = (
        make_round(overheads_during=0.1 * MS, overheads_before=0.1 * MS),
        make_round(overheads_during=0.8 * MS, overheads_before=0.1 * MS),
    )

    assert disturbing.bound == honest.bound
    assert disturbing.drift == pytest.approx(0.7 * MS)


def test_a_quieter_calibration_counts_as_it_is() -> None:
    assert make_round(overheads_during=1.0, overheads_before=5.0).overhead == 1.0


def test_a_window_costs_what_this_very_candidate_needed_and_the_trusted_one_tells_the_drift() -> (
    None
):
    assert make_round(overheads_during=5.0, overheads_before=5.0, own_overheads=9.0).overhead == 9.0
    assert make_round(overheads_during=4.0, overheads_before=5.0, own_overheads=9.0).overhead == 8.0
    assert (
        make_round(overheads_during=6.0, overheads_before=5.0, own_overheads=9.0).overhead == 9.0
    )  # no noise that allows it


def test_as_much_dearer_as_the_noise_explains_a_window_may_become() -> None:
    calm, busy = (
        make_round(
            overheads_during=6.0 * MS,
            overheads_before=5.0 * MS,
            own_overheads=9.0 * MS,
            noise=noise,
        )
        for noise in (1.0, 1.0 * MS)
    )

    assert calm.overhead == pytest.approx(9.0 * MS, abs=100.0)
    assert busy.overhead == pytest.approx(10.0 * MS)


def test_on_the_cpu_nobody_gains_by_a_disturbed_calibration_either() -> None:
    rounds = [
        make_round(overheads_during=overheads_during, overheads_before=5.0, on_gpu=False)
        for overheads_during in (4.0, 5.0, 6.0)
    ]

    assert [each.overhead for each in rounds] == [4.0, 5.0, 5.0]


def test_on_the_cpu_a_candidate_can_skip_what_answering_costs() -> None:
    honest = make_round(on_gpu=False)
    assert honest.skippable == 0.0  # nothing is known of it

    honest.calibration_cpu_ns = [100_000.0, 200_000.0, 150_000.0]

    assert honest.skippable == 150_000.0
    honest.echo_cpu_ns = [20_000, 30_000, 900_000]
    assert honest.skippable == 150_000.0 - 30_000 + QUICKER_ECHO_NS


def test_noise_beside_the_timed_calls_explains_nothing() -> None:
    """What a candidate left on the GPU may widen those windows."""
    disturbed = make_round(
        overheads_during=6.0 * MS, overheads_before=5.0 * MS, own_overheads=9.0 * MS
    )
    disturbed.overheads_during = [6.0 * MS + step * MS for step in (-2, -1, 0, 1, 2)]

    assert disturbed.overhead == 9.0 * MS


def test_noise_in_a_candidates_own_calibration_is_noise_of_its_bound() -> None:
    quiet, noisy = (make_round(overheads_before=0.1 * MS) for _ in range(2))
    noisy.own_overheads = [0.1 * MS + each for each in (-200.0, -100.0, 0.0, 100.0, 200.0)]

    assert quiet.error == 0.0
    assert noisy.error > 0.0


def test_what_a_remote_candidate_could_skip_is_all_that_a_window_costs() -> None:
    near, far = (make_round(overheads_during=0.1 * MS, overheads_before=0.1 * MS) for _ in range(2))
    far.remote = True

    assert near.skippable == 0.0
    assert far.skippable == far.overhead == 0.1 * MS


def test_less_than_nothing_cannot_be_skipped() -> None:
    far = make_round(overheads_during=-1.0)
    far.remote = True

    assert far.skippable == 0.0


def test_a_restart_forgets_the_timed_calls_and_keeps_every_calibration() -> None:
    restarted = make_round(overheads_before=0.1 * MS, noise=1000.0)
    restarted.late, restarted.discarded = 2, 4

    assert restarted.discard_late(9 * MS)
    assert len(restarted.windows) == len(restarted.claims) == 5
    assert restarted.choosable > 0  # by being late a candidate chooses which calls count
    assert not restarted.discard_late(9 * MS)

    assert (restarted.windows, restarted.claims, restarted.repeated) == ([], [], [])
    assert (restarted.late, restarted.discarded) == (0, 6)
    assert (
        len(restarted.overheads_before)
        == len(restarted.own_overheads)
        == len(restarted.overheads_during)
        == 5
    )


def test_a_bound_is_never_less_than_the_threads_share_of_cpu_time() -> None:
    busy = Round(
        threads=2,
        windows=[500.0, 510.0, 490.0],
        overheads_during=[600.0, 600.0, 600.0],
        overheads_before=[600.0, 600.0, 600.0],
        cpu_ns_used=[900.0, 900.0, 900.0],
        calibration_cpu_ns=[100.0, 100.0, 100.0],
    )
    assert busy.bound == 400.0
    assert busy.least_wall_ns == 400.0


def test_a_quiet_machines_bound_is_the_window_less_the_overhead() -> None:
    quiet = Round(
        threads=2,
        windows=[1000.0],
        overheads_during=[600.0],
        overheads_before=[600.0],
        cpu_ns_used=[500.0],
        calibration_cpu_ns=[100.0],
    )
    assert quiet.bound == 400.0
    assert quiet.least_wall_ns == 200.0


def test_cpu_time_bounds_the_value_from_below() -> None:
    busy = make_round(window=0.2 * MS)
    busy.threads, busy.cpu_ns_used, busy.calibration_cpu_ns = 2, [1.0 * MS] * 3, [0.2 * MS] * 3

    assert busy.least_wall_ns == busy.bound == pytest.approx(0.4 * MS)
    assert make_round().least_wall_ns < 0


def test_a_calibrating_window_is_disturbed_when_it_is_much_longer_than_those_before() -> None:
    calm = make_round(overheads_before=0.1 * MS)

    assert not calm.disturbed_by(0.1 * MS + DISTURBED_NS)
    assert calm.disturbed_by(0.1 * MS + DISTURBED_NS + 1)
    assert not calm.disturbed_by(0.0)


def test_one_slow_calibration_on_the_cpu_changes_neither_the_time_nor_how_well_it_is_known() -> (
    None
):
    calm, jolted = make_round(on_gpu=False), make_round(on_gpu=False)
    calm.overheads_before = [0.1 * MS] * HOST_CALIBRATIONS
    jolted.overheads_before = [*calm.overheads_before[1:], 50 * MS]

    assert (jolted.bound, jolted.error) == (calm.bound, calm.error)


def test_on_the_cpu_nothing_counts_as_disturbed() -> None:
    assert not make_round(on_gpu=False).disturbed_by(10 * MS)


def test_who_finds_a_round_disturbed_hands_it_on() -> None:
    found = make_round()

    assert DisturbedError(found).round is found


def test_calls_that_the_machine_slowed_do_not_count_against_the_submission() -> None:
    timed = make_round()
    timed.discarded = DISCARDS_MOST  # slowed by the power brake, say
    for _ in range(DISCARDS_MOST):
        timed.discard(VerdictError(Verdict.DISALLOWED, "ran"))
        timed.discard(DisturbedError(timed))
    with pytest.raises(VerdictError, match="ran"):
        timed.discard(VerdictError(Verdict.DISALLOWED, "ran"))


def test_a_drift_counts_on_a_gpu_in_either_direction() -> None:
    found = make_round(overheads_before=0.1 * MS)

    assert not found.drifts(0.1 * MS + DRIFT_MOST_NS)
    assert found.drifts(0.1 * MS + DRIFT_MOST_NS + 1)
    assert found.drifts(0.1 * MS - DRIFT_MOST_NS - 1)
    assert not make_round(on_gpu=False).drifts(MS)


def test_where_a_part_of_the_input_lies_on_the_host_a_drift_has_to_be_larger() -> None:
    found = make_round(overheads_before=0.1 * MS)
    found.hosted = True

    assert not found.drifts(0.1 * MS + DRIFT_HOSTED_NS)
    assert found.drifts(0.1 * MS + DRIFT_HOSTED_NS + 1)


def test_telling_an_answer_takes_time_of_which_a_candidate_may_spare_a_part() -> None:
    silent, telling = make_round(), make_round()
    telling.host_waits_ns = [0.1 * MS, 0.2 * MS, 0.3 * MS]

    assert telling.bound == silent.bound
    assert (silent.skippable, telling.skippable) == (0.0, 0.2 * MS + telling.overhead)


def test_where_trusted_windows_vary_a_drift_is_more_than_that() -> None:
    noisy = make_round(overheads_before=0.1 * MS, noise=10_000.0)

    assert not noisy.drifts(0.1 * MS + 2 * DRIFT_MOST_NS)
    assert noisy.drifts(0.2 * MS)


@pytest.mark.parametrize(("on_gpu", "bound"), [(False, 800.0), (True, 300.0)])
def test_only_on_the_cpu_a_kept_call_takes_as_long_as_its_cpu_time(
    bound: float, *, on_gpu: bool
) -> None:
    quick = Round(
        on_gpu=on_gpu,
        overheads_during=[0.0],
        overheads_before=[0.0],
        own_overheads=[0.0],
        calibration_cpu_ns=[100.0],
    )
    quick.add(300.0, 250.0, 900)
    assert quick.bound == bound


@pytest.mark.parametrize(("window", "bound"), [(8.0, 16.5), (19.5, 16.5), (22.0, 19.0)])
def test_calls_that_wait_for_their_input_are_not_timed_shorter_than_a_trusted_wait(
    window: float, bound: float
) -> None:
    timed = make_round(window, overheads_during=3.0)
    timed.waiting_windows, timed.calibration_ns = [30.0, 10.0, 20.0], [0.4, 0.5, 0.7]

    assert timed.bound == bound
    assert timed.skippable == 16.5  # work can be hidden in such a wait


def test_calls_that_are_queued_ahead_do_not_wait() -> None:
    timed = make_round(8.0, overheads_during=3.0, claimed=True)
    timed.waiting_windows, timed.calibration_ns = [10.0], [0.5]

    assert timed.bound == 5.0
    assert timed.skippable == 0.0
