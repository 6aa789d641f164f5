"""The lines on where an evaluation ran."""

from bot.reports.machine import gpu_state_line, isolation_line, machine_line, machine_lines
from runners.contract.evaluation import Isolation
from tests.doubles.factories import make_environment, make_evaluation


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
