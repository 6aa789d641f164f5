from collections.abc import Callable
from pathlib import Path

import pytest

from runners.contract import files
from runners.contract.evaluation import Limits
from runners.contract.task import PROFILE_S, Mode, Workload
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.graders import native
from runners.harness.judge.session import EvaluationSession
from runners.harness.profile.kernel_profile import (
    Kernel,
    KernelProfile,
    KernelProfiler,
    NoProfileError,
    Tables,
)
from runners.harness.profile.profiler import profile, profile_by, profile_kernels
from runners.harness.timing.calls import WARM_UPS
from runners.harness.toolchains import ncu
from runners.harness.verdicts import VerdictError
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Judge, Sit

CRASHES = "import os\n" + SORTED.replace(
    "    return", "    if 'PYTHONPATH' in os.environ: os.abort()\n    return"
)
"""Under the profiler alone."""
TWO = (Workload(args={"size": 1000, "seed": 2}), Workload(args={"size": 2000, "seed": 2}))


def test_a_profiled_output_is_checked(sit: Sit) -> None:
    cheating = SORTED.replace("def", "calls = []\ndef").replace(
        "    return",
        f"    calls.append(1)\n    if len(calls) > {WARM_UPS}: return data[1]\n    return",
    )
    session = sit(make_judging(cheating, Mode.PROFILE))

    with pytest.raises(VerdictError) as ruling:
        profile(session, session.request.task.benchmarks[0], Deadline.after(20))

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


Outcome = KernelProfile | NoProfileError
Look = Callable[..., EvaluationSession]


@pytest.fixture
def look(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Profiles two cases of which these outcomes are told, without any process."""

    def looked(*outcomes: Outcome, **changes: object) -> EvaluationSession:
        told = iter(outcomes)

        def profile(
            _self: KernelProfiler, _workload: Workload, deadline: Deadline
        ) -> KernelProfile:
            assert 0 < deadline.remaining <= PROFILE_S
            outcome = next(told)
            if isinstance(outcome, NoProfileError):
                raise outcome
            return outcome

        monkeypatch.setattr(KernelProfiler, "profile_call", profile)
        session = sit(make_judging(SORTED, Mode.PROFILE, **changes))
        profiler = KernelProfiler(session, ncu.Ncu(Path("ncu"), "0.0.1"))
        profile_by(profiler, TWO, KernelProfiler.profile_call)
        return session

    return looked


def seen(name: str, report: bytes) -> KernelProfile:
    return KernelProfile(Tables((Kernel(f"  {name}"),)), report)


def parts(session: EvaluationSession) -> list[str]:
    return session.log.decode().split("\nncu 0.0.1, size: ")[1:]


def test_each_case_has_its_tables_and_its_report(look: Look) -> None:
    session = look(seen("one", b"1"), seen("two", b"2"))
    found = [(each.name, each.content()) for each in session.files]
    assert found == [("case-1.ncu-rep", b"1"), ("case-2.ncu-rep", b"2")]
    first, second = parts(session)
    assert first.startswith("1000; seed: 2:\n  one\n")
    assert second.startswith("2000; seed: 2:\n  two\n")
    assert second.endswith("case-2.ncu-rep (0.0 MiB, 0.0 MiB packed), for Nsight Compute\n")


def test_details_are_kept_as_csv_behind_the_reports(look: Look) -> None:
    one = KernelProfile(Tables(()), b"1", listed='"ID"\n"1"\n')
    session = look(one, seen("two", b"2"))
    found = [(each.name, each.content()) for each in session.files]
    assert found == [
        ("case-1.ncu-rep", b"1"),
        ("case-2.ncu-rep", b"2"),
        ("case-1.csv", b'"ID"\n"1"\n'),
    ]


def test_long_tables_share_what_the_log_may_have(look: Look) -> None:
    long = seen("long\n    a line of a table" * 1000, b"")
    session = look(long, long, limits=Limits(output=4096))
    assert len(session.log) <= 4096
    first, second = parts(session)
    for each in (first, second):
        assert "\n[... " in each
        assert each.endswith("for Nsight Compute\n")
    assert abs(len(first) - len(second)) < 400


def test_what_goes_wrong_in_one_case_is_told_in_its_place(look: Look) -> None:
    session = look(NoProfileError("it is late"), seen("two", b"2"))
    first, second = parts(session)
    assert first == "1000; seed: 2:\nno profile: it is late\n"
    assert second.startswith("2000; seed: 2:\n  two\n")
    assert [each.name for each in session.files] == ["case-2.ncu-rep"]


@pytest.mark.parametrize("most", ["PACKED_MAX", "FILE_MAX"])
def test_a_report_that_does_not_fit_is_left_out_and_the_next_may_fit(
    look: Look, monkeypatch: pytest.MonkeyPatch, most: str
) -> None:
    monkeypatch.setattr(files, most, 50)
    session = look(seen("one", bytes(range(99))), seen("two", b"2"))
    assert [each.name for each in session.files] == ["case-2.ncu-rep"]
    assert "  one\ncase-1.ncu-rep of 0.0 MiB is left out: all reports" in session.log.decode()


def test_where_it_may_not_look_one_line_says_why(sit: Sit, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> ncu.Ncu:
        raise ncu.UnusableError("nobody may")

    monkeypatch.setattr(ncu, "here", refuse)
    session = sit(make_judging(SORTED, Mode.PROFILE))
    profile_kernels(session, TWO)
    assert session.log == b""  # there is nothing to look at on the CPU
    session.on_gpu = True
    profile_kernels(session, TWO)
    assert session.log == b"no kernel was profiled by ncu: nobody may\n"


def test_the_verdict_is_the_checked_call_s(
    judge: Judge, found: ncu.Ncu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        native,
        "profile_kernels",
        lambda session, cases: profile_by(KernelProfiler(session, found), cases),
    )
    crashing = judge(make_judging(CRASHES, Mode.PROFILE))
    assert (crashing.verdict, crashing.files) == (Verdict.PASSED, ())
    assert "aten::sort" in crashing.log  # the table of torch's profiler
    assert "no profile: it ended with an error; the end of its output" in crashing.log
    wrong = judge(
        make_judging(CRASHES.replace("torch.sort(data[0]).values", "data[0]"), Mode.PROFILE)
    )
    assert (wrong.verdict, wrong.files) == (Verdict.WRONG_ANSWER, ())
    assert "ncu" not in wrong.log
