"""What the page of a submission says of each benchmark."""

import pytest

from bot.web.routes.pages.submission import benchmarks
from runners.contract.evaluation import CaseKind, StopReason
from tests.doubles.factories import make_case, make_measurement


@pytest.mark.parametrize("reason", StopReason)
def test_the_page_says_why_a_timing_stopped(reason: StopReason) -> None:
    measured = make_measurement().model_copy(update={"stop_reason": reason})
    (timed,) = benchmarks([make_case(CaseKind.BENCHMARK, measurement=measured)])

    assert ("100 times slower than the reference" in timed.stopped) == (reason is StopReason.SLOW)
