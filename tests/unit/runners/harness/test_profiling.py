import pytest

from runners.contract.task import Mode
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.profiling import profile
from runners.harness.ruling import Ruling
from runners.harness.timing import WARM_UPS
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Sit


def test_a_profiled_output_is_checked(sit: Sit) -> None:
    cheating = SORTED.replace("def", "calls = []\ndef").replace(
        "    return",
        f"    calls.append(1)\n    if len(calls) > {WARM_UPS}: return data[1]\n    return",
    )
    session = sit(make_judging(cheating, Mode.PROFILE))

    with pytest.raises(Ruling) as ruling:
        profile(session, session.request.task.benchmarks[0], Deadline.after(20))

    assert ruling.value.verdict is Verdict.WRONG_ANSWER
