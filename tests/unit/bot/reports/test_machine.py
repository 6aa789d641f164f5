"""The lines on where an evaluation ran."""

from bot.domain.reference_times import scaled
from bot.reports.machine import (
    gpu_state_line,
    isolation_line,
    machine_line,
    machine_lines,
    noisy_lines,
    turn_lines,
)
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind, CaseResult, Isolation
from tests.doubles.factories import make_case, make_environment, make_evaluation, make_measurement


def test_a_machine_without_a_gpu_is_named_by_its_processor() -> None:
    assert machine_line(make_environment()).startswith("machine: test, 2 cores")


def test_a_machine_with_a_gpu_begins_with_it() -> None:
    environment = make_environment("H200").model_copy(update={"torch": "2.13", "driver": "580"})
    assert machine_line(environment).startswith("machine: H200, test")
    assert "torch 2.13, driver 580" in machine_line(environment)


def test_missing_layers_are_said_with_their_reasons() -> None:
    isolation = Isolation(outer="unshare", layers=("limits",), missing={"landlock": "old kernel"})
    assert isolation_line(isolation) == "sandbox: unshare; limits; missing: landlock: old kernel"
    assert isolation_line(Isolation(outer="none")) == "sandbox: none; no isolation layer"


def test_the_state_of_the_gpu_has_its_clocks_power_and_temperature() -> None:
    clocks = {
        "sm_mhz": 1755.0, "memory_mhz": 3201.0, "temperature_c": 64.0,
        "power_w": 698.4, "power_limit_w": 700.0, "power_capped": 1.0,
    }  # fmt: skip
    assert gpu_state_line(clocks) == (
        "GPU state: 1,755 MHz, memory 3,201 MHz, 698 of 700 W, slowed by its power limit, 64 °C"
    )


def test_what_is_not_known_of_the_gpu_is_left_out() -> None:
    assert gpu_state_line({"power_w": 81.0, "power_capped": 0.0}) == "GPU state: 81 W"
    evaluation = make_evaluation()
    assert not [line for line in machine_lines(evaluation) if "GPU state" in line]


def test_the_state_of_the_gpu_follows_the_machine() -> None:
    environment = make_environment("H200").model_copy(update={"clocks": {"sm_mhz": 1980.0}})
    _, state, _ = machine_lines(make_evaluation(environment=environment))
    assert state == "GPU state: 1,980 MHz"


def _notes(*cases: CaseResult) -> list[str]:
    made = make_evaluation(cases=cases)
    return [*noisy_lines(made), *turn_lines(made)]


def test_a_time_that_is_too_noisy_to_be_ranked_says_what_that_means() -> None:
    noisy = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.23e6))
    (note,) = _notes(noisy)
    assert note == (
        "size: 1024: too noisy here: varies by 23%, and a rank needs 15% or less. The result is "
        "kept and is no failure, but is not ranked; submit again, best when the runner's machine "
        "is less busy"
    )


def test_a_time_without_the_ratio_by_which_it_ranks_says_what_happened() -> None:
    measured = make_measurement(1e6).model_copy(update={"reference_missed": True})
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    words = "the reference was timed in too few rounds to compare with it, which a rank needs: "
    (note,) = _notes(case)
    assert note.startswith(f"size: 1024: {words}")
    (note,) = _notes(case, make_case(CaseKind.BENCHMARK), case)
    assert note.startswith(f"benchmark 1; benchmark 3: {words}")


def test_a_time_of_which_the_clock_saw_nothing_says_how_much_it_may_have_missed() -> None:
    changes = {"resolution_ns": 563_000.0}
    short = make_case(
        CaseKind.BENCHMARK, measurement=make_measurement(1e3).model_copy(update=changes)
    )
    (note,) = _notes(short)
    assert note == (
        "size: 1024: too short here: the judge's clock measured 1.00 µs, and may have missed "
        "563 µs. The result is kept and is no failure, but is not ranked; submit again, best when "
        "the runner's machine is less busy"
    )


def test_a_time_that_is_hardly_too_noisy_does_not_read_as_if_it_could_be_ranked() -> None:
    (note,) = _notes(make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.152e6)))
    assert "varies by 16%, and a rank needs 15% or less" in note


def test_a_speed_up_has_its_interval_and_calls_left_out_are_counted() -> None:
    found = Ratio(ratio=0.8, half_width=0.02, rounds=5)
    changes = {"vs_reference": found, "left_out": 3, "samples": ((1e6,) * 7,)}
    measured = make_measurement(1e6).model_copy(update=changes)
    speed_up, left_out = _notes(make_case(CaseKind.BENCHMARK, measurement=measured))
    assert speed_up == "size: 1024: 1.25x (1.22 to 1.28) vs reference, timed in turn with it"
    assert left_out == (
        "size: 1024: 3 of 10 calls waited for a core of the machine: they were checked,"
        " but do not count towards the time"
    )


def test_a_ratio_that_says_nothing_is_not_told() -> None:
    def notes(half_width: float) -> list[str]:
        changes = {"vs_reference": Ratio(ratio=0.8, half_width=half_width, rounds=5)}
        measured = make_measurement(1e6).model_copy(update=changes)
        return _notes(make_case(CaseKind.BENCHMARK, measurement=measured))

    assert any("vs reference" in each for each in notes(0.4))
    assert not any("vs reference" in each for each in notes(0.41))


def test_a_machine_that_was_slower_than_usual_is_mentioned() -> None:
    def notes(*slowdowns: float) -> list[str]:
        times = [scaled(make_measurement(1e6), each) for each in slowdowns]
        return _notes(*(make_case(CaseKind.BENCHMARK, measurement=each) for each in times))

    (told,) = notes(1.6)
    assert told.endswith(
        "the reference took 1.6 times as long as usual on this board; the time is divided by that"
    )
    (told,) = notes(1.6, 1.02, 0.8)
    assert "benchmark 1 1.6 times; benchmark 3 0.8 times" in told
    assert notes(1.04) == []


def test_a_ranked_run_on_the_cpu_says_that_the_ratio_decides() -> None:
    found = {"vs_reference": Ratio(ratio=0.8, half_width=0.02, rounds=5)}
    measured = scaled(make_measurement(1e6).model_copy(update=found), 1.0)
    (speed_up,) = _notes(make_case(CaseKind.BENCHMARK, measurement=measured))
    assert speed_up.endswith("timed in turn with it; on the CPU this decides the rank")


def test_a_note_on_several_benchmarks_is_one_line_that_names_them() -> None:
    found = Ratio(ratio=0.8, half_width=0.184, rounds=5)
    changes = {"vs_reference": found, "left_out": 3, "samples": ((1e6,) * 7,)}
    measured = make_measurement(1e6, 0.23e6).model_copy(update=changes)
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    quiet = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6))
    noisy, speed_up, left_out = _notes(case, quiet, case)
    noise = "benchmark 1 varies by 23%; benchmark 3 varies by 23%"
    assert noisy.startswith(f"too noisy here: {noise}, and a rank")
    one = "1.25x (1.02 to 1.62)"
    assert speed_up == (
        f"vs reference, timed in turn with it: benchmark 1 {one}; benchmark 3 {one}"
    )
    assert left_out.startswith(
        "calls that waited for a core of the machine: benchmark 1 3 of 10; benchmark 3 3 of 10; "
    )
