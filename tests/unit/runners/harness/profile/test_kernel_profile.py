"""The phases under the profiler of kernels, with a stand-in for `ncu`, in their real sandboxes."""

import pytest

from runners.contract.task import Mode
from runners.harness.deadline import Deadline
from runners.harness.judge.session import EvaluationSession
from runners.harness.profile.kernel_profile import KernelProfile, KernelProfiler, NoProfileError
from runners.harness.timing.calls import WARM_UPS
from runners.harness.toolchains import ncu
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Sit

LAUNCHES = SORTED.replace("def", "from pathlib import Path\ndef").replace(
    "    return",
    "    with Path('launched').open('a') as seen:\n"
    "        print('sorts', data[0].shape[0], data[0].sum().item(), file=seen)\n    return",
)
"""Says where the stand-in looks that a kernel was launched, and on what."""


def profiled(session: EvaluationSession, found: ncu.Ncu, seconds: float = 40) -> KernelProfile:
    workload = session.request.task.benchmarks[0]
    return KernelProfiler(session, found).profile_call(workload, Deadline.after(seconds))


def test_the_call_is_made_on_the_public_input_and_its_tables_are_read(
    sit: Sit, found: ncu.Ncu
) -> None:
    session = sit(make_judging(LAUNCHES, Mode.PROFILE))
    seen = profiled(session, found)
    data = session.code.generate(session.request.task.benchmarks[0], 0)
    lines = seen.report.decode().splitlines()
    assert len(lines) == WARM_UPS + 1
    assert lines[0].startswith(f"sorts {data[0].shape[0]} ")
    assert len(set(lines)) == 1  # the input is fresh for every call
    text = seen.tables.text(9999)
    assert text.startswith("  sorts 20000 ")
    assert "Speed Of Light Throughput (of a stand-in)\n" in text
    assert "    Section: Memory Workload Analysis Tables\n    a counter of a stand-in\n" in text
    assert seen.listed.startswith('"ID","Kernel Name","Metric Name","Metric Value"\n"0","sorts ')
    assert "seccomp" in (*session.isolation.layers, *session.isolation.missing)
    assert {"ncu", "ncu tables"} <= session.durations_s.keys()


def test_every_counter_is_printed_where_that_is_asked_for(sit: Sit, found: ncu.Ncu) -> None:
    session = sit(make_judging(LAUNCHES, Mode.PROFILE))
    (workload,) = session.request.task.benchmarks
    rows = KernelProfiler(session, found).count_call(workload, Deadline.after(40)).splitlines()
    assert rows[1] == '"ID","Kernel Name","launch__block_size"'
    assert rows[3].startswith('"0","sorts 20000 ')
    assert len(rows) == 3 + WARM_UPS + 1


def test_a_call_that_launches_nothing_has_no_profile(sit: Sit, found: ncu.Ncu) -> None:
    with pytest.raises(NoProfileError, match="no kernel was launched between the marks"):
        profiled(sit(make_judging(SORTED, Mode.PROFILE)), found)


@pytest.mark.parametrize(
    ("deed", "seconds", "words"),
    [
        ("raise ValueError('not today')", 40, "it ended with an error"),
        ("time.sleep(100)", 4, "the time limit passed"),
        ("print('a flood of words ' * 200_000)", 40, "more than 1024 KiB were written"),
    ],
)
def test_whatever_goes_wrong_is_told_and_no_verdict(
    sit: Sit, found: ncu.Ncu, deed: str, seconds: float, words: str
) -> None:
    source = f"import os, time\nfrom torch import sort\ndef custom_kernel(data):\n    {deed}\n"
    with pytest.raises(NoProfileError) as told:
        profiled(sit(make_judging(source, Mode.PROFILE)), found, seconds)
    assert words in str(told.value)


def test_a_report_that_cannot_be_read_is_kept_and_its_tables_are_missed(
    sit: Sit, found: ncu.Ncu
) -> None:
    source = SORTED.replace("    return", "    open('launched', 'wb').write(b'\\xff')\n    return")
    seen = profiled(sit(make_judging(source, Mode.PROFILE)), found)
    assert seen.report == b"\xff"
    assert seen.fault.startswith("its tables cannot be shown: it ended with status 1; the end")
