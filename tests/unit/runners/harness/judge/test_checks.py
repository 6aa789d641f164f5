import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat

import pytest
import torch

from runners.contract.verdict import Verdict
from runners.harness.judge.checks import (
    Changes,
    changes_in,
    first_place,
    placed,
    refuse_changed,
    refuse_new_processes,
    run_in_child,
    same,
)
from runners.harness.protocol.arena import Arena, lay_out, view
from runners.harness.protocol.values import DTYPES, Node, ScalarNode, TensorNode, tensors
from runners.harness.sandbox.syscalls import memory_limited
from runners.harness.verdicts import OutOfTimeError, VerdictError

BASE = 1 << 40
NAN = float("nan")
EVERYTHING = slice(None)


def refuse(
    data: list[torch.Tensor], changed: int | None, output: Node, only: slice = EVERYTHING
) -> bool:
    """Whether an input did change, where that is not refused; `only` a part of it does."""
    plan = lay_out(data)
    with Arena(1 << 20) as arena:
        arena.write(plan.node, data)
        if changed is not None:
            view(arena.buffer, tensors(plan.node)[changed])[only].add_(1)
        changes = changes_in(arena, data)
        refuse_changed(changes, placed(tensors(output), BASE))
        pairs = zip(changes.after, changes.private, strict=True)
        return any(not torch.equal(*map(torch.nan_to_num, pair)) for pair in pairs)


def at(data: list[torch.Tensor], which: int) -> TensorNode:
    """An output that is the candidate's view of one input."""
    node = tensors(lay_out(data).node)[which]
    return node.model_copy(update={"address": BASE + (node.offset or 0), "offset": None})


ELSEWHERE = TensorNode(dtype="float32", shape=(4,), stride=(1,), address=BASE - 4096)


@pytest.mark.parametrize(
    "data",
    [
        [torch.ones(4), torch.zeros(0)],
        [torch.tensor([NAN, 1.0])],
        [torch.arange(6.0).reshape(2, 3).T],
        [torch.tensor([True]), torch.ones(3).to(torch.bfloat16)],
    ],
)
def test_an_untouched_input_is_fine(data: list[torch.Tensor]) -> None:
    assert not refuse(data, None, ELSEWHERE)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 24, 25])
@pytest.mark.parametrize("start", [0, 1, 8])
def test_a_change_of_any_byte_is_found(size: int, start: int) -> None:
    for changed in range(size):
        left, right = torch.zeros(2, start + size, dtype=torch.uint8)[:, start:]
        assert same(left, right)
        right[changed] = 1
        assert not same(left, right)


def test_a_changed_input_is_refused() -> None:
    with pytest.raises(VerdictError, match="changed an input") as ruling:
        refuse([torch.ones(4), torch.ones(5)], 1, ELSEWHERE)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_an_input_that_is_given_back_may_be_changed() -> None:
    data = [torch.ones(4), torch.ones(5)]

    assert refuse(data, 1, at(data, 1))


def test_giving_one_input_back_does_not_allow_to_change_another() -> None:
    data = [torch.ones(4), torch.ones(5)]

    with pytest.raises(VerdictError):
        refuse(data, 0, at(data, 1))


def test_an_output_without_tensors_gives_nothing_back() -> None:
    with pytest.raises(VerdictError):
        refuse([torch.ones(4)], 0, ScalarNode(value=1))


@pytest.mark.parametrize(
    ("now", "words"),
    [
        ((1, 2, 3), "left a process running"),
        ((3, 4, 5, 6), "left 2 processes running .* the first call"),
    ],
)
def test_more_processes_than_after_the_warm_up_are_refused(
    now: tuple[int, ...], words: str
) -> None:
    with pytest.raises(VerdictError, match=words) as ruling:
        refuse_new_processes(frozenset({1, 2}), now)

    assert ruling.value.verdict is Verdict.DISALLOWED


@pytest.mark.parametrize("now", [(), (1,), (2, 1), (1, 3), (3, 4)])
def test_processes_of_the_warm_up_may_stay_end_or_be_replaced(now: tuple[int, ...]) -> None:
    refuse_new_processes(frozenset({1, 2}), now)
    with pytest.raises(VerdictError):
        refuse_new_processes(frozenset(range(len(now))), (*now, 9))


def test_pythons_resource_tracker_may_start_late_but_only_one() -> None:
    code = "import time; time.sleep(60)  # multiprocessing.resource_tracker"
    found = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    try:
        refuse_new_processes(frozenset({1}), (1, found[0].pid))
        with pytest.raises(VerdictError, match="left a process running"):
            refuse_new_processes(frozenset({1}), (1, *(each.pid for each in found)))
        with pytest.raises(VerdictError, match="left a process running"):
            refuse_new_processes(frozenset({found[0].pid}), (found[0].pid, os.getpid()))
    finally:
        for each in found:
            each.kill()
            each.wait()


@pytest.mark.parametrize("shift", [-16, 16])
def test_an_output_right_beside_an_input_does_not_give_it_back(shift: int) -> None:
    data = [torch.ones(4)]
    beside = at(data, 0)

    with pytest.raises(VerdictError):
        refuse(data, 0, beside.model_copy(update={"address": beside.address + shift}))


@pytest.mark.parametrize("name", ["float4_e2m1fn_x2", "float8_e8m0fnu", "float8_e4m3fnuz"])
def test_a_changed_byte_is_found_in_types_of_few_operations(name: str) -> None:
    left, equal, other = (
        torch.full((6, 4), value, dtype=torch.uint8).view(DTYPES[name]).T for value in (255, 255, 7)
    )
    place = TensorNode(dtype=name, shape=(4, 6), stride=(1, 4), device="cpu", offset=0)
    refuse_changed(Changes([place], [left], [equal]), [])
    with pytest.raises(VerdictError, match="changed an input"):
        refuse_changed(Changes([place], [left], [other]), [])


def test_conjugated_and_negated_views_are_compared_by_their_values() -> None:
    numbers = torch.randn(5, dtype=torch.complex64)
    negated = torch._neg_view(torch.ones(3))
    data = [numbers.conj(), negated]

    assert not refuse(data, None, ScalarNode())
    assert same(numbers.conj(), numbers.conj().resolve_conj())
    assert same(negated, -torch.ones(3))
    assert not same(numbers.conj(), numbers)
    with pytest.raises(VerdictError):
        refuse(data, 0, ScalarNode())


def test_a_single_element_is_compared_whatever_its_stride() -> None:
    left, equal, other = (torch.full((3,), value).as_strided((1,), (3,)) for value in (1, 1, 2))
    place = TensorNode(dtype="int64", shape=(1,), stride=(3,), address=0, device="cpu", offset=0)
    refuse_changed(Changes([place], [left], [equal]), [])
    with pytest.raises(VerdictError, match="changed an input"):
        refuse_changed(Changes([place], [left], [other]), [])


def part_of(data: list[torch.Tensor], first: int, count: int, stride: int = 1) -> TensorNode:
    """An output of some numbers of the first input."""
    whole = at(data, 0)
    changed = {"shape": (count,), "stride": (stride,), "address": whole.address + 4 * first}
    return whole.model_copy(update=changed)


@pytest.mark.parametrize("stride", [(7, 0), (0, 7), (5, 2)])
def test_an_output_with_gaps_that_reaches_as_far_as_one_without_allows_no_change(
    stride: tuple[int, int],
) -> None:
    data = [torch.ones(8)]
    hollow = at(data, 0).model_copy(update={"shape": (2, 4), "stride": stride})

    with pytest.raises(VerdictError, match="changed an input"):
        refuse(data, 0, hollow, slice(1, 7))


@pytest.mark.parametrize("stride", [(4, 1, 3), (1, 2, 9)])
def test_an_input_that_is_given_back_in_another_order_may_be_changed(
    stride: tuple[int, int, int],
) -> None:
    data = [torch.ones(8)]
    turned = at(data, 0).model_copy(update={"shape": (2, 4, 1), "stride": stride})

    assert refuse(data, 0, turned)


def test_only_the_returned_part_of_an_input_may_be_changed() -> None:
    data = [torch.ones(8)]

    assert refuse(data, 0, part_of(data, 2, 3), slice(2, 5))
    for changed in (slice(2, 6), slice(1, 5), EVERYTHING):
        with pytest.raises(VerdictError, match="changed an input"):
            refuse(data, 0, part_of(data, 2, 3), changed)


def test_an_output_beside_an_input_that_shares_its_last_number_gives_back_that_alone() -> None:
    data = [torch.ones(8)]
    beside = part_of(data, 7, 8)

    assert refuse(data, 0, beside, slice(7, 8))
    with pytest.raises(VerdictError, match="changed an input"):
        refuse(data, 0, beside)


def test_an_output_with_gaps_gives_back_only_its_own_elements() -> None:
    """A kernel that changed the first column in place and returned it was refused."""
    data = [torch.ones(8)]

    assert refuse(data, 0, part_of(data, 1, 2, stride=3), slice(1, 5, 3))
    for changed in (EVERYTHING, slice(1, 5), slice(2, 6, 3)):
        with pytest.raises(VerdictError, match="changed an input"):
            refuse(data, 0, part_of(data, 1, 2, stride=3), changed)


@pytest.mark.parametrize("stride", [(3, 1), (4, 0)])
def test_an_output_that_repeats_elements_gives_each_of_them_back(stride: tuple[int, int]) -> None:
    data = [torch.ones(8)]
    repeated = at(data, 0).model_copy(update={"shape": (2, 4), "stride": stride})
    changed = slice(0, 7) if stride[1] else slice(0, 5, 4)

    assert refuse(data, 0, repeated, changed)
    with pytest.raises(VerdictError, match="changed an input"):
        refuse(data, 0, repeated)


def test_an_input_with_gaps_may_be_changed_if_it_is_given_back() -> None:
    data = [torch.ones(4, 2)[:, 0], torch.ones(4, 2)[:, 0]]
    column = at(data, 0)

    assert refuse(data, 0, column)
    with pytest.raises(VerdictError, match="changed an input"):
        refuse(data, 1, column)


@pytest.mark.parametrize("other", [{"shape": (3,)}, {"stride": (3,)}])
def test_a_part_of_an_input_with_gaps_gives_no_other_part_back(other: dict[str, object]) -> None:
    data = [torch.ones(4, 2)[:, 0]]

    with pytest.raises(VerdictError, match="changed an input"):
        refuse(data, 0, at(data, 0).model_copy(update=other))


def test_a_transposed_input_may_be_given_back() -> None:
    data = [torch.arange(6.0).reshape(2, 3).T]

    assert refuse(data, 0, at(data, 0))


@pytest.mark.parametrize("after", [torch.ones(4).view(torch.int32), torch.ones(2, 2)])
def test_an_input_of_another_type_or_shape_has_changed_unless_all_of_it_is_given_back(
    after: torch.Tensor,
) -> None:
    place = TensorNode(dtype="float32", shape=(4,), stride=(1,), offset=0)
    changes = Changes([place], [after], [torch.ones(4)])

    refuse_changed(changes, [place.model_copy(update={"dtype": "int8", "shape": (16,)})])
    with pytest.raises(VerdictError, match="input"):
        refuse_changed(changes, [place.model_copy(update={"shape": (3,)})])


@pytest.mark.parametrize("shape", [(), (1,), (7, 3), (2, 1, 5, 4)])
def test_the_first_true_element_is_found(shape: tuple[int, ...]) -> None:
    found = torch.randn(shape).t() if len(shape) == 2 else torch.randn(shape)
    mask = found >= found.median()
    assert first_place(mask) == tuple(mask.nonzero()[0].tolist())


def test_finding_the_first_true_element_takes_little_memory() -> None:
    mask = torch.ones(1 << 12, 1, 1, 1 << 12, dtype=torch.bool)
    with memory_limited(2 * mask.nbytes):
        assert first_place(mask) == (0, 0, 0, 0)


@pytest.mark.parametrize("text", ["mismatch", "\u00fc \n" * 1000, None])
def test_a_child_sends_what_a_check_found(text: str | None) -> None:
    assert run_in_child(lambda: text, 60) == text


def test_a_check_in_a_child_may_use_threads() -> None:
    numbers = torch.randn(1 << 20)
    torch.sort(numbers.view(1024, -1))  # the threads that it starts do not exist in a child

    def check() -> str | None:
        return str(torch.sort(numbers.view(1024, -1)).values.shape)

    assert run_in_child(check, 60) == "torch.Size([1024, 1024])"


def test_a_check_in_a_child_has_the_state_of_its_thread() -> None:
    """It ran in a new thread, where torch's modes are others and `signal` cannot be used."""
    with torch.inference_mode():

        def check() -> str | None:
            before = signal.signal(signal.SIGALRM, signal.SIG_IGN)  # only in the main thread
            signal.signal(signal.SIGALRM, before)
            return str(torch.is_inference_mode_enabled())

        assert run_in_child(check, 60) == "True"


def test_a_verdict_of_a_check_in_a_child_is_raised() -> None:
    def check() -> str | None:
        raise VerdictError(Verdict.TASK_ERROR, "the task's check failed")

    with pytest.raises(VerdictError, match="check failed") as ruling:
        run_in_child(check, 60)

    assert ruling.value.verdict is Verdict.TASK_ERROR


def test_a_check_that_no_signal_ends_is_ended_with_its_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    children: list[int] = []
    fork = os.fork

    def forked() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", forked)
    with pytest.raises(VerdictError, match="checked the output") as ruling:
        run_in_child(lambda: str(sum(repeat(0))), 0.1)

    assert ruling.value.verdict is Verdict.TIMED_OUT
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], os.WNOHANG)


@pytest.fixture
def alarm() -> Iterator[None]:
    def ring(_signal: int, _frame: object) -> None:
        raise OutOfTimeError(Verdict.TASK_ERROR, "the task's own code took longer")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm")
def test_the_task_is_not_blamed_if_the_alarm_comes_during_a_check_in_a_child() -> None:
    with pytest.raises(VerdictError) as ruling:
        run_in_child(lambda: str(sum(repeat(0))), 60)

    assert ruling.value.verdict is Verdict.TIMED_OUT


def test_no_alarm_comes_during_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its exception was lost in a handler of `logging`, whose lock stayed taken in every child."""
    fork, during = os.fork, []

    def forking() -> int:
        during.append(signal.getitimer(signal.ITIMER_REAL)[0])
        return fork()

    monkeypatch.setattr(os, "fork", forking)
    signal.setitimer(signal.ITIMER_REAL, 600)
    try:
        assert run_in_child(lambda: None, 60) is None
        left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

    assert during == [0]
    assert 500 < left_s <= 600


def test_a_result_is_read_whole_also_from_a_small_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has used up all pages for pipes gets small ones, and half of a result is no JSON."""
    pipe = os.pipe

    def small() -> tuple[int, int]:
        reader, writer = pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        return reader, writer

    monkeypatch.setattr(os, "pipe", small)
    text = "\U0001f600" * 4000

    assert run_in_child(lambda: text, 60) == text


def test_a_process_that_a_check_leaves_behind_does_not_hold_up_its_result() -> None:
    """It has the pipe too, whose end then does not come."""
    ready, go = os.pipe()

    def check() -> str | None:
        if os.fork() == 0:
            os.close(go)
            os.read(ready, 1)  # until the test has ended
            os._exit(0)
        return "mismatch"

    assert run_in_child(check, 20) == "mismatch"
    os.close(go)
    os.close(ready)


def test_half_of_a_result_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda fd, data, write=os.write: write(fd, data[:5]))
    with pytest.raises(VerdictError, match="ended without a result"):
        run_in_child(lambda: "text", 60)


def test_a_check_whose_process_ends_has_no_result() -> None:
    with pytest.raises(VerdictError, match="ended without a result") as ruling:
        run_in_child(lambda: os._exit(1), 60)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER
