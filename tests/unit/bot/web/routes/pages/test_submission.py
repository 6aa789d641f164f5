"""Tests of a submission's page: by whose clock the times are, and which cases passed."""

import pytest

from runners.contract.evaluation import CaseKind, CaseResult, StopReason, Timing
from runners.contract.task import Mode
from tests.doubles.agents import make_door
from tests.doubles.browsers import Browser
from tests.doubles.exhibition import Exhibition, make_exhibition, make_machine
from tests.doubles.factories import make_case, make_measurement

JUDGES_CLOCK = "<strong>Time</strong> is by the judge's own clock"


@pytest.fixture
async def shown() -> Exhibition:
    return await make_exhibition(rounds=1)


async def page_of(
    shown: Exhibition, *cases: CaseResult, mode: Mode = Mode.RANKED, timing: Timing = Timing.OUTSIDE
) -> str:
    """Submit and judge with these cases; return the submission's page."""
    number = (await shown.submit("Ada", "empty", ("CPU",), mode)).id
    machine = make_machine("CPU").model_copy(update={"timing": timing})
    await shown.judge("CPU", cases=cases, environment=machine)
    return await Browser(make_door(shown.store, shown.clock)).text(f"/submissions/{number}")


@pytest.mark.parametrize("timing", Timing)
async def test_only_the_judges_times_are_said_to_be_by_its_clock(
    shown: Exhibition, timing: Timing
) -> None:
    reported = {"stop_reason": StopReason.TASK} if timing is Timing.IN_PROCESS else {}
    measured = make_measurement().model_copy(update=reported)
    case = make_case(CaseKind.BENCHMARK, measurement=measured)
    text = await page_of(shown, case, timing=timing)
    assert (JUDGES_CLOCK in text) == (timing is Timing.OUTSIDE)
    assert ("In-process timing: the times come from" in text) == (timing is Timing.IN_PROCESS)


async def test_what_passed_is_called_a_test_unless_it_was_profiled(shown: Exhibition) -> None:
    ranked = await page_of(shown, make_case(), make_case(CaseKind.BENCHMARK))
    assert "<summary>1 test passed</summary>" in ranked
    profiled = make_case(), make_case(CaseKind.PROFILE)
    profile = await page_of(shown, *profiled, mode=Mode.PROFILE)
    assert "<summary>2 cases passed</summary>" in profile
