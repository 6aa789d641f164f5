import math
import os
import select
import signal
import threading
from contextlib import nullcontext
from typing import Any

import pytest
import torch

from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge import host_candidate
from runners.harness.judge.host_candidate import verify
from runners.harness.judge.pool import fresh_candidate
from runners.harness.protocol.arena import lay_out
from runners.harness.protocol.channel import Operation
from runners.harness.relay import CheckWatch
from runners.harness.verdicts import OutOfTimeError, RivalBrokeContextError, VerdictError
from tests.doubles.judging import SORTED, make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Sit

INPUT = (torch.tensor([3.0, 1.0, 2.0]), torch.empty(3))


@pytest.fixture(autouse=True)
def _no_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of earlier tests in this process are no task's."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


ROOM = lay_out(INPUT)
UNSORTED = "def custom_kernel(data):\n    return data[0]\n"
WRITING = """
import torch
def custom_kernel(data):
    right = torch.sort(data[0]).values
    data[0].zero_()
    return right
"""


def checked(sit: Sit, source: str, data: object = INPUT, *, mutates_inputs: bool = False) -> None:
    """One call of this source, and the check of its output."""
    limit = Deadline.after(10)
    session = sit(make_judging(source, task=make_sort_task(mutates_inputs=mutates_inputs)))
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, data, None, limit).reply
        verify(candidate, data, reply, None, deadline=limit)


def test_a_wrong_output_is_refused_with_the_tasks_own_words(sit: Sit) -> None:
    with pytest.raises(VerdictError, match="mismatch") as ruling:
        checked(sit, UNSORTED)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_a_changed_input_is_refused_unless_the_task_allows_it(sit: Sit) -> None:
    checked(sit, WRITING, mutates_inputs=True)
    with pytest.raises(VerdictError, match="changed an input") as ruling:
        checked(sit, WRITING)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


IN_PLACE = """
import torch
def custom_kernel(data):
    return data[0].copy_(torch.sort(data[0]).values){part}
"""


def test_a_kernel_may_return_an_input_with_gaps_that_it_changed(sit: Sit) -> None:
    column = (torch.tensor([[3.0, 1.0], [1.0, 1.0], [2.0, 1.0]])[:, 0], torch.empty(3))

    checked(sit, IN_PLACE.format(part=""), column)
    with pytest.raises(VerdictError, match="changed an input"):
        checked(sit, IN_PLACE.format(part=".clone()"), column)


@pytest.mark.parametrize(
    "output", ["torch.zeros(1 << 20)", "[data[0], ('1e900000000', 2)]", "{'1e900000000': data[0]}"]
)
def test_the_check_of_a_large_output_or_a_text_ends_with_the_time(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    """No signal ends a long call of a library, or of Python with a large number."""
    monkeypatch.setattr(host_candidate, "CHECK_S", -10.0)
    source = f"import torch\ndef custom_kernel(data):\n    return {output}\n"

    with pytest.raises(VerdictError, match="checked the output") as ruling:
        checked(sit, source)

    assert ruling.value.verdict is Verdict.TIMED_OUT


def test_a_large_output_that_is_wrong_is_refused_with_the_tasks_own_words(sit: Sit) -> None:
    with pytest.raises(VerdictError, match="mismatch") as ruling:
        checked(sit, "import torch\ndef custom_kernel(data):\n    return torch.zeros(1 << 20)\n")

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_an_output_counts_only_if_the_candidate_stayed_frozen_until_it_was_read(sit: Sit) -> None:
    limit = Deadline.after(10)
    with fresh_candidate(sit(make_judging(SORTED)), ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        verify(candidate, INPUT, reply, None, deadline=limit)
        signal.pidfd_send_signal(candidate.handle.process.pidfd, signal.SIGCONT)

        with pytest.raises(VerdictError, match="did not stay frozen") as ruling:
            verify(candidate, INPUT, reply, None, deadline=limit)

    assert ruling.value.verdict is Verdict.DISALLOWED


def test_a_candidate_that_is_killed_before_it_is_read_answers_nothing(sit: Sit) -> None:
    limit = Deadline.after(10)
    with fresh_candidate(sit(make_judging(SORTED)), ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        signal.pidfd_send_signal(candidate.handle.process.pidfd, signal.SIGKILL)
        select.select([candidate.handle.process.pidfd], [], [], 10)

        with pytest.raises(VerdictError) as ruling:
            verify(candidate, INPUT, reply, None, deadline=limit)

    assert ruling.value.verdict is Verdict.MEMORY_EXCEEDED


def test_a_check_in_a_task_with_threads_runs_in_the_judge(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forked child has none of the task's threads, and waited for them as long as it might."""
    limit, processes = Deadline.after(10), list[int]()
    session = sit(make_judging(SORTED))
    monkeypatch.setattr(session.code, "mismatch", lambda *_: processes.append(os.getpid()))
    monkeypatch.setattr(host_candidate, "may_take_long", lambda *_: True)
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        verify(candidate, INPUT, reply, None, deadline=limit)
        assert processes == []
        monkeypatch.setattr(threading, "active_count", lambda: 2)
        verify(candidate, INPUT, reply, None, deadline=limit)

    assert processes == [os.getpid()]


@pytest.mark.parametrize("step", ["code.mismatch", "fetch", "refuse_changes"])
def test_the_server_knows_when_an_output_is_read_and_checked(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Laying out an output with gaps took minutes, in one call that no signal ends."""
    limit, seen = Deadline.after(10), list[bool]()
    session = sit(make_judging(SORTED))
    watch = session.watch = CheckWatch()
    watch.begin(-1)
    with fresh_candidate(session, ROOM, None) as candidate:
        owner, name = (session.code, "mismatch") if "." in step else (candidate, step)
        made = getattr(owner, name)

        def watched(*given: Any) -> Any:  # noqa: ANN401 - handed on
            seen.append(watch.is_late())
            return made(*given)

        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        monkeypatch.setattr(owner, name, watched)
        verify(candidate, INPUT, reply, None, deadline=limit)

    assert (seen, watch.is_late()) == ([True], False)


def test_a_check_much_slower_than_usual_counts_as_the_submissions_time(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, session = Deadline.after(10), sit(make_judging(SORTED))
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        monkeypatch.setattr(session.code, "usual_check_s", lambda _: 0.0)
        verify(candidate, INPUT, reply, None, deadline=limit)

    assert 0 < session.durations_s["slow checks"] < session.durations_s["check"]


@pytest.mark.parametrize("source", [SORTED, UNSORTED])
@pytest.mark.parametrize("in_child", [True, False])
def test_the_check_of_a_right_output_tells_how_long_one_takes(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, source: str, *, in_child: bool
) -> None:
    monkeypatch.setattr(host_candidate, "may_take_long", lambda *_: in_child)
    limit, session = Deadline.after(10), sit(make_judging(source))
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        with nullcontext() if source == SORTED else pytest.raises(VerdictError, match="mismatch"):
            verify(candidate, INPUT, reply, None, deadline=limit)

    usual_s = session.code.usual_check_s(INPUT)
    assert 0 < usual_s < 10 if source == SORTED else usual_s == math.inf


@pytest.mark.parametrize("is_rival", [True, False])
@pytest.mark.parametrize("reason", [None, "device-side assert triggered"])
def test_an_output_of_the_rival_that_breaks_the_judges_context_ends_the_evaluation(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, reason: str | None, *, is_rival: bool
) -> None:
    """The submission was told an internal error."""
    monkeypatch.setattr(host_candidate, "broken_by", lambda: reason)
    limit, session = Deadline.after(10), sit(make_judging(UNSORTED))
    session.is_rival = is_rival
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, INPUT, None, limit).reply
        session.on_gpu = True
        kind = RivalBrokeContextError if is_rival and reason else VerdictError
        with pytest.raises(kind, match="mismatch"):
            verify(candidate, INPUT, reply, None, deadline=limit)
        session.on_gpu = False


TWICE = """
import ctypes, mmap, os, torch
C = ctypes.CDLL(None)
C.mmap.restype = ctypes.c_void_p
def custom_kernel(data):
    file = os.open("/tmp/page", os.O_CREAT | os.O_RDWR)
    os.ftruncate(file, 4096)
    place = C.mmap(None, ctypes.c_size_t(8192), 3, 0x22, -1, ctypes.c_long(0))
    for at in (place, place + 4096):
        C.mmap(ctypes.c_void_p(at), ctypes.c_size_t(4096), 3, 0x11, file, ctypes.c_long(0))
    numbers = torch.frombuffer((ctypes.c_float * 2048).from_address(place), dtype=torch.float32)
    return {output}
"""


@pytest.mark.parametrize(
    ("output", "refused"),
    [
        ("numbers", True),
        ("[numbers[:3], numbers[1024:1027]]", True),
        ("[numbers[:3], numbers[:3], numbers[1027:]]", False),
        ("numbers[1022:1025]", False),
    ],
)
@pytest.mark.parametrize("data", [INPUT, 3])
def test_an_output_may_not_have_the_same_memory_at_two_addresses(
    sit: Sit, output: str, data: object, *, refused: bool
) -> None:
    limit = Deadline.after(10)
    session = sit(make_judging(TWICE.format(output=output)))
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        reply = candidate.call(Operation.RUN, data, None, limit).reply
        if not refused:
            candidate.refuse_misplaced_output(data, reply)
            return
        with pytest.raises(VerdictError, match="same memory at two addresses") as ruling:
            candidate.refuse_misplaced_output(data, reply)

    assert ruling.value.verdict is Verdict.DISALLOWED


def test_the_task_is_not_blamed_for_an_output_that_is_read_too_late(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> None:
        raise OutOfTimeError(Verdict.TASK_ERROR, "the task's own code took longer")

    monkeypatch.setattr(host_candidate.HostCandidate, "fetch", late)
    with pytest.raises(VerdictError, match="while the output was read") as ruling:
        checked(sit, SORTED)

    assert ruling.value.verdict is Verdict.TIMED_OUT
