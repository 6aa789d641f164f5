"""What a report adds to the times of an evaluation; the other notes are in `test_submission.py`."""

from bot.reports.time_notes import time_notes
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind, CaseResult
from tests.doubles.factories import make_case, make_evaluation, make_measurement


def _notes(*cases: CaseResult) -> list[str]:
    return [each.text for each in time_notes(make_evaluation(cases=cases))]


def test_a_time_that_is_too_noisy_to_be_ranked_says_what_that_means() -> None:
    noisy = make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.23e6))
    (note,) = _notes(noisy)
    assert note == (
        "size: 1024: too noisy here: ± 23%, and a rank needs ± 15% or less. The result is kept and"
        " is no failure, but is not ranked; submit again when the runner's machine is less busy"
    )


def test_a_speed_up_has_its_interval_and_calls_left_out_are_counted() -> None:
    found = Ratio(ratio=0.8, half_width=0.02, rounds=5)
    changes = {"vs_reference": found, "left_out": 3, "samples": ((1e6,) * 7,)}
    measured = make_measurement(1e6).model_copy(update=changes)
    speed_up, left_out = _notes(make_case(CaseKind.BENCHMARK, measurement=measured))
    assert speed_up == "size: 1024: 1.25x (1.22 to 1.28) vs reference, timed in turn with it"
    assert left_out == (
        "size: 1024: 3 of 10 calls waited for other processes of the machine: they were checked,"
        " and do not count into the time"
    )
