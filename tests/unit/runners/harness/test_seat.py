import os

import pytest
import torch

from runners.contract.evaluation import Limits
from runners.contract.verdict import Verdict
from runners.harness.arena import lay_out
from runners.harness.channel import Operation, Reply, Status
from runners.harness.deadline import Deadline
from runners.harness.ruling import Ruling
from runners.harness.seat import host_seat
from runners.harness.session import Session
from runners.harness.values import FloatNode, Node, ScalarNode, SequenceNode, TensorNode
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Sit

INPUT = (torch.tensor([3.0, 1.0, 2.0]), torch.empty(3))
ROOM = lay_out(INPUT)
COUNTING = "import torch\ndef custom_kernel(data):\n    return torch.get_num_threads()\n"


def answered(session: Session) -> object:
    limit = Deadline.after(10)
    with host_seat(session, ROOM) as seat:
        seat.build(limit)
        return seat.fetch(seat.call(Operation.RUN, INPUT, None, limit).reply)


def test_the_judge_gets_a_copy_of_its_own(sit: Sit) -> None:
    output = answered(sit(make_judging(SORTED)))

    assert isinstance(output, torch.Tensor)
    assert output.tolist() == [1.0, 2.0, 3.0]  # the candidate has ended by now


def test_the_log_and_the_durations_are_kept(sit: Sit) -> None:
    session = sit(make_judging(SORTED.replace("return", "print('hello'); return")))

    answered(session)

    assert bytes(session.log) == b"hello\n"
    assert {"start", "kill"} <= session.durations_s.keys()


def test_the_trusted_reader_gives_an_input_back(sit: Sit) -> None:
    with host_seat(sit(make_judging()), ROOM) as seat:
        exchange = seat.call(Operation.TOUCH, INPUT, None, Deadline.after(10))

        assert torch.equal(seat.fetch(exchange.reply), INPUT[1])
        assert 0 < seat.overhead(exchange) < exchange.window_ns


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (TensorNode(dtype="float32", shape=(3,), stride=(1,), device="cuda"), "device cuda"),
        (TensorNode(dtype="strange", shape=(3,), stride=(1,)), "type strange"),
        (TensorNode(dtype="float32", shape=(3,), stride=(1,), address=8), "cannot be read"),
        (FloatNode(value="no number"), "invalid hexadecimal"),
        (FloatNode(value="0x1p99999"), "too large"),
    ],
)
def test_a_description_of_nothing_is_a_wrong_answer(sit: Sit, output: Node, words: str) -> None:
    with (
        host_seat(sit(make_judging()), ROOM) as seat,
        pytest.raises(Ruling, match=words) as ruling,
    ):
        seat.fetch(Reply(status=Status.DONE, output=output))

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_many_outputs_together_may_not_exceed_the_memory_limit(sit: Sit) -> None:
    session = sit(make_judging(limits=Limits(memory=64 << 20)))
    with host_seat(session, ROOM) as seat:
        wide = TensorNode(dtype="uint8", shape=(40 << 20,), stride=(0,), address=seat.base)
        assert seat.fetch(Reply(status=Status.DONE, output=wide)).numel() == 40 << 20

        both = SequenceNode(kind="list", items=(wide, wide))
        with pytest.raises(Ruling, match="larger than the memory limit"):
            seat.fetch(Reply(status=Status.DONE, output=both))


def test_a_reply_without_an_output_is_refused(sit: Sit) -> None:
    with host_seat(sit(make_judging()), ROOM) as seat, pytest.raises(Ruling) as ruling:
        seat.fetch(Reply(status=Status.DONE))

    assert ruling.value.verdict is Verdict.DISALLOWED


def test_changes_without_an_answer_are_not_looked_for(sit: Sit) -> None:
    with host_seat(sit(make_judging()), ROOM) as seat:
        seat.refuse_changes(INPUT, Reply(status=Status.DONE))
        with pytest.raises(Ruling, match="changed an input"):  # nobody laid it in the arena
            seat.refuse_changes(INPUT, Reply(status=Status.DONE, output=ScalarNode(value=1)))


def test_a_kernel_has_the_threads_by_which_its_time_is_bounded(sit: Sit) -> None:
    request = make_judging(COUNTING, limits=Limits(processes=1000))

    assert answered(sit(request)) == len(os.sched_getaffinity(0))
