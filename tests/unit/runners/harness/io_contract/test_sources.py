from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from bot.web.compat.evaluation_server.requests import Request
from bot.web.compat.evaluation_server.translate import order_of
from runners.contract.evaluation import Evaluation
from runners.contract.io_contract import CONTRACT, Contract, Side
from runners.contract.task import Mode
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.io_contract.sources import SourceProcess, attribute_to_reference, own_session
from runners.harness.sandbox import charged_memory
from runners.harness.verdicts import OutOfTimeError, VerdictError
from tests.doubles.ioing import ADD, MODEL, PAIR, TRIPLE, compare, evaluate, kernel
from tests.doubles.judging import make_judging
from tests.unit.runners.harness.conftest import Judge, Sit


def judged(judge: Judge, request: Request) -> Evaluation:
    return judge(order_of(request).request("unit").model_copy(update={"mode": Mode.TEST}))


def test_a_reference_is_blamed_for_what_falls_in_its_turn() -> None:
    told = r"^the reference kernel: timed out: too long$"
    with pytest.raises(VerdictError, match=told) as caught, attribute_to_reference(Side.REFERENCE):
        raise VerdictError(Verdict.TIMED_OUT, "too long", Stage.TIMING)
    assert caught.value.verdict is Verdict.TASK_ERROR
    with pytest.raises(VerdictError, match=told), attribute_to_reference(Side.REFERENCE):
        raise caught.value
    with pytest.raises(VerdictError, match=r"^too long$"), attribute_to_reference(Side.CUSTOM):
        raise VerdictError(Verdict.TIMED_OUT, "too long")


@pytest.mark.parametrize(("left_s", "late"), [(-1, True), (60, False)])
def test_a_reference_has_too_little_time_only_if_the_whole_is_over(
    left_s: float, *, late: bool
) -> None:
    end = Deadline.after(left_s)
    with pytest.raises(VerdictError) as caught, attribute_to_reference(Side.REFERENCE, end):
        raise VerdictError(Verdict.TIMED_OUT, "too long")
    assert isinstance(caught.value, OutOfTimeError) is late
    with pytest.raises(VerdictError) as caught, attribute_to_reference(Side.REFERENCE, end):
        raise VerdictError(Verdict.CRASHED, "an exception")
    assert not isinstance(caught.value, OutOfTimeError)


SLEEPING = "import time\ndef go(x, y, out):\n    time.sleep({})\n    out.copy_(x + y)\n"


@pytest.mark.parametrize(
    ("share", "verdict"), [(0.6, Verdict.TIMED_OUT), (0.0, Verdict.TASK_ERROR)]
)
def test_who_used_up_the_time_is_to_blame_if_the_reference_has_too_little(
    judge: Judge, share: float, verdict: Verdict
) -> None:
    endless = kernel(SLEEPING.format(60), "multi_kernel", TRIPLE, entry_point="go")
    limit_s = order_of(compare(ref=endless, timeout=8)).request("unit").task.test_timeout
    late = kernel(SLEEPING.format(share * limit_s), "multi_kernel", TRIPLE, entry_point="go")
    found = judged(judge, compare(late, endless, timeout=8))
    assert found.verdict is verdict, found.message


def test_who_uses_up_the_time_before_the_timing_is_to_blame_too(judge: Judge) -> None:
    body = """import sys, time
sys.modules["runners.harness.protocol.builds"].pack = lambda *_: time.sleep(100)
def go(x, y, out): out.copy_(x + y)
"""
    late = kernel(body, "multi_kernel", TRIPLE, entry_point="go")
    usual = kernel(SLEEPING.format(0), "multi_kernel", TRIPLE, entry_point="go")
    request = order_of(compare(late, usual, timeout=8)).request("unit")
    found = judge(request.model_copy(update={"mode": Mode.RANKED}))
    assert found.verdict is Verdict.TIMED_OUT, found.message


def test_the_references_time_is_not_the_submissions(sit: Sit) -> None:
    request = order_of(compare()).request("unit")
    session = replace(sit(make_judging()), request=request)
    contract = Contract.model_validate_json(request.task.files[CONTRACT])
    with own_session(session, contract, Side.REFERENCE) as own:
        own.durations_s["run"] = 5.0
    assert session.durations_s == {"reference": 5.0}
    with own_session(session, contract, Side.CUSTOM) as own:
        assert own.durations_s is session.durations_s


def test_what_has_fallen_on_public_data_is_not_tried_again_for_as_long(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endless kernel had its whole time twice on a GPU, so that its caller had hung up."""
    limits: list[float] = []

    def fall(_: SourceProcess, __: object, ___: object, deadline: Deadline) -> None:
        limits.append(deadline.remaining)
        raise VerdictError(Verdict.TIMED_OUT, "too long")

    monkeypatch.setattr(SourceProcess, "_answer_structure", fall)
    request = order_of(evaluate(timeout=30)).request("unit")
    session = replace(sit(make_judging()), request=request)
    asked = SourceProcess(session, Side.REFERENCE)
    for _ in range(2):
        with pytest.raises(VerdictError, match="the reference kernel: timed out: too long"):
            asked.request("answer", {}, Deadline.after(29), dict)
    assert limits == [pytest.approx(session.request.task.test_timeout, abs=1)]
    assert session.request.task.test_timeout < 20


@pytest.mark.parametrize(("side", "before"), [(Side.REFERENCE, 5), (Side.CUSTOM, 1)])
def test_kernel_memory_that_a_submission_holds_is_not_charged_to_the_reference(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, side: Side, before: int
) -> None:
    """A submission that held sockets just below its own limit became the task's fault."""
    seen: list[int] = []
    handle = SimpleNamespace(unmapped_before=1, verify_frozen=lambda _: None)

    def call(*_: object) -> SimpleNamespace:
        seen.append(handle.unmapped_before)
        return SimpleNamespace(reply=None)

    candidate = SimpleNamespace(handle=handle, call=call, fetch=lambda *_: torch.ones(1))
    asked = SourceProcess(sit(make_judging()), side)
    asked.running["answer"] = cast("Any", SimpleNamespace(candidate=candidate, answer=None))
    monkeypatch.setattr(charged_memory, "unmapped_memory", lambda: 5)

    asked.request("answer", {}, Deadline.after(9), dict)

    assert seen == [before]


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("import os\ndef add(x, y): os._exit(0)\n", "exited with status 0"),
        ("def add(x, y): raise ValueError('boom')\n", "ValueError: boom"),
        ("def add(x, y) return\n", "build failed: SyntaxError"),
        ("def sub(x, y): return x - y\n", "there is no `add`"),
        ("import torch\ndef add(x, y): return torch.ones(3).to_sparse()\n", "layout"),
    ],
)
def test_a_reference_that_fails_says_how(judge: Judge, ref: str, words: str) -> None:
    request = compare(ref=kernel(ref, "torch", PAIR, function_name="add"))
    found = judged(judge, request)
    assert found.verdict is Verdict.TASK_ERROR
    assert found.message.startswith("the reference kernel")
    assert words in found.message


def test_a_source_that_tells_no_inputs_fails_by_itself(judge: Judge) -> None:
    broken = MODEL.replace("return [torch.randn(8, 16)]", "raise ValueError('none')")
    found = judged(judge, evaluate(kernel(broken)))
    assert (found.verdict, "ValueError: none" in found.message) == (Verdict.CRASHED, True)
    endless = MODEL.replace("return [torch.randn(8, 16)]", "import time; time.sleep(60)")
    found = judged(judge, evaluate(kernel(endless), timeout=5))
    assert found.verdict is Verdict.TIMED_OUT
    assert found.wall_s < 5


def test_inputs_may_share_elements_or_be_turned(judge: Judge) -> None:
    turned = "return [torch.randn(16).expand(8, 16)] if torch.rand(1) else 0"
    odd = kernel(MODEL.replace("return [torch.randn(8, 16)]", turned))
    assert judged(judge, evaluate(odd)).verdict is Verdict.PASSED


def test_a_reference_may_not_change_what_the_kernel_is_compared_on(judge: Judge) -> None:
    vandal = kernel(
        "def add(x, y):\n    z = x + y\n    x.zero_()\n    y.zero_()\n    return z\n",
        "torch", PAIR, function_name="add",
    )  # fmt: skip
    right = kernel(ADD, "torch", PAIR, function_name="add")
    assert judged(judge, compare(right, vandal)).verdict is Verdict.PASSED
    changed = judged(judge, compare(vandal, right))
    assert "changed an input" in changed.message
