from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.web.compat.evaluation_server.translate import contract_of, order_of
from runners.contract.io_contract import Side
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.io_contract.reference import ContractTask
from runners.harness.judge.session import EvaluationSession
from runners.harness.profile.kernel_profile import KernelProfiler, NoProfileError
from runners.harness.profile.profiler import collect_counters
from runners.harness.toolchains import ncu
from runners.harness.verdicts import GradingResult, VerdictError
from tests.doubles.ioing import compare
from tests.doubles.judging import make_judging
from tests.unit.runners.harness.conftest import Sit

TABLE = '"ID","Kernel Name"\n"",""\n"0","add"\n'
SOON = Deadline.after(60)
Bench = tuple[EvaluationSession, ContractTask]
Say = Callable[[str | Exception], None]


@pytest.fixture
def bench(sit: Sit) -> Bench:
    """A comparison whose counters are asked for, as if on a GPU."""
    asked = compare().model_copy(update={"device_metrics": True})
    code = ContractTask(contract_of(asked), on_gpu=False)
    request = order_of(asked).request("unit")
    session = replace(sit(make_judging()), request=request, on_gpu=True, task_code=code)
    code.sessions = dict.fromkeys(Side, session)
    return session, code


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, found: ncu.Ncu) -> Say:
    """Has the profiler print a text, or fail."""

    def told(what: str | Exception) -> None:
        def counted(*_: object) -> str:
            if isinstance(what, Exception):
                raise what
            return what

        monkeypatch.setattr(KernelProfiler, "count_call", counted)

    return told


def test_each_kernel_has_a_file_of_its_counters(bench: Bench, say: Say) -> None:
    session, _ = bench
    say(f"==WARNING== beside the table\n{TABLE}")
    collect_counters(session, GradingResult(), SOON)
    assert [each.name for each in session.files] == ["reference.csv", "custom.csv"]
    assert session.files[0].content().decode() == TABLE
    assert session.log == b""


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (NoProfileError("it ended"), "kernel: custom: it ended"),
        (VerdictError(Verdict.TIMED_OUT, "too long"), "kernel: reference: too long"),
        ("nothing", "custom.csv has no counters"),
    ],
)
def test_what_goes_wrong_is_a_line_of_the_log(
    bench: Bench, say: Say, what: str | Exception, words: str
) -> None:
    session, _ = bench
    say(what)
    collect_counters(session, GradingResult(), SOON)
    assert session.files == []
    assert words in session.log.decode()


def test_a_table_that_is_too_large_to_be_sent_is_a_line_of_the_log(bench: Bench, say: Say) -> None:
    session, _ = bench
    say(f"{TABLE}{'x' * (65 << 20)}")
    collect_counters(session, GradingResult(), SOON)
    assert session.files == []
    assert "custom.csv is too large to be sent" in session.log.decode()


def test_nothing_is_counted_unasked_or_of_a_failure(bench: Bench, say: Say) -> None:
    session, _ = bench
    say(TABLE)
    failed = GradingResult()
    failed.fail(Stage.TEST, VerdictError(Verdict.CRASHED, "boom"))
    collect_counters(session, failed, SOON)
    plain = ContractTask(contract_of(compare()), on_gpu=False)
    plain.after(session, GradingResult())
    tested = session.request.model_copy(update={"mode": Mode.TEST})
    collect_counters(replace(session, request=tested), GradingResult(), SOON)
    assert not session.files
    assert not session.log


def test_a_machine_that_cannot_count_says_why(bench: Bench) -> None:
    session, _ = bench
    collect_counters(replace(session, on_gpu=False), GradingResult(), SOON)
    assert "there is no GPU here" in session.log.decode()
