"""What the page of a submission says of each benchmark."""

import pytest

from bot.reports.benchmarks import benchmarks_of
from runners.contract.evaluation import CaseKind, StopReason
from tests.doubles.factories import make_case, make_evaluation, make_measurement


@pytest.mark.parametrize("reason", StopReason)
def test_the_page_says_why_a_timing_stopped(reason: StopReason) -> None:
    measured = make_measurement().model_copy(update={"stop_reason": reason})
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    (timed,) = benchmarks_of(make_evaluation(cases=(case,)))

    assert ("100 times slower than the reference" in timed.stopped) == (reason is StopReason.SLOW)
