import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runners.contract.evaluation import Limits
from runners.contract.verdict import Stage, Verdict
from runners.harness.deadline import Deadline
from runners.harness.judge import checks, host_candidate
from runners.harness.judge.host_candidate import HostCandidate, threads_of
from runners.harness.judge.pool import fresh_candidate
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol.arena import lay_out, view
from runners.harness.protocol.builds import Builds
from runners.harness.protocol.channel import CandidateReply, Exchange, Operation, Status
from runners.harness.protocol.values import (
    FloatNode,
    Node,
    ScalarNode,
    SequenceNode,
    TensorNode,
    tensors,
)
from runners.harness.supervision import process
from runners.harness.supervision.handle import CandidateHandle
from runners.harness.verdicts import VerdictError
from tests.doubles.judging import SORTED, make_judging
from tests.unit.runners.harness.conftest import Sit

INPUT = (torch.tensor([3.0, 1.0, 2.0]), torch.zeros(3))
ROOM = lay_out(INPUT)
COUNTING = "import torch\ndef custom_kernel(data):\n    return torch.get_num_threads()\n"


def nested(depth: int) -> Node:
    node: Node = FloatNode(value="0x1p0")
    for _ in range(depth):
        node = SequenceNode(kind="list", items=(node,))
    return node


def described(
    candidate: HostCandidate, output: Node | None, expected: Node | None = None, seconds: float = 10
) -> Any:  # noqa: ANN401 - whatever is described
    """What the judge fetches when the candidate describes this."""
    reply = CandidateReply(status=Status.DONE, output=output)
    return candidate.fetch(reply, expected, Deadline.after(seconds))


def answered(session: EvaluationSession) -> object:
    limit = Deadline.after(10)
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        return candidate.fetch(candidate.call(Operation.RUN, INPUT, None, limit).reply, None, limit)


def test_the_judge_gets_a_copy_of_its_own(sit: Sit) -> None:
    output = answered(sit(make_judging(SORTED)))

    assert isinstance(output, torch.Tensor)
    assert output.tolist() == [1.0, 2.0, 3.0]  # the candidate has ended by now


def test_a_request_tells_the_structure_only_if_it_is_that_of_calibration(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    call = CandidateHandle.call

    def calling(
        self: CandidateHandle, order: bytes, deadline: Deadline, go: Callable[[], bytes]
    ) -> Exchange:
        sent.append(order)
        return call(self, order, deadline, go)

    monkeypatch.setattr(CandidateHandle, "call", calling)
    shorter = (torch.tensor([2.0, 1.0]), torch.zeros(2))
    limit = Deadline.after(10)
    with fresh_candidate(sit(make_judging(SORTED)), ROOM, None) as candidate:
        candidate.build(limit)
        candidate.call(Operation.RUN, INPUT, None, limit)
        found = candidate.fetch(
            candidate.call(Operation.RUN, shorter, None, limit).reply, None, limit
        )
        candidate.call(Operation.RUN, INPUT, None, limit)

    assert [b"shape" in order for order in sent] == [True, False, False]  # nor any later one
    assert found.tolist() == [1.0, 2.0]


def test_the_caches_are_flushed_while_the_candidate_is_frozen(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a flush before that, a candidate filled them with its own code: half of the time."""
    frozen: list[bool] = []
    with fresh_candidate(sit(make_judging(SORTED)), ROOM, None) as candidate:
        monkeypatch.setattr(
            host_candidate,
            "flush_caches",
            lambda: frozen.append(candidate.handle.process.frozen),
        )
        candidate.build(Deadline.after(10))
        for operation in (Operation.TOUCH, Operation.RUN):
            candidate.call(operation, INPUT, None, Deadline.after(10))
        candidate.echo(Deadline.after(10))

    assert frozen == [True] * 3


def test_the_log_and_the_durations_are_kept(sit: Sit) -> None:
    session = sit(make_judging(SORTED.replace("return", "print('hello'); return")))

    answered(session)

    assert bytes(session.log) == b"hello\n"
    assert {"start", "kill"} <= session.durations_s.keys()


def test_the_trusted_reader_gives_an_input_back(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        exchange = candidate.call(Operation.TOUCH, INPUT, None, Deadline.after(10))

        assert torch.equal(candidate.fetch(exchange.reply, None, Deadline.after(10)), INPUT[1])
        assert 0 < candidate.overhead(exchange) < exchange.window_ns


def test_the_trusted_reader_describes_as_many_tensors_as_the_output_has(sit: Sit) -> None:
    expected = lay_out([INPUT, 5, INPUT]).node
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        touched = candidate.call(Operation.TOUCH, INPUT, expected, Deadline.after(10)).reply
        echoed = candidate.echo(Deadline.after(10))

    assert touched.output is not None
    assert len(tensors(touched.output)) == len(tensors(expected))
    assert echoed.reply.output is None
    assert echoed.cpu_ns > 0


def test_the_scalars_of_an_output_are_expected_once_and_only_as_placeholders(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    request = CandidateHandle.request

    def requesting(self: CandidateHandle, order: bytes, deadline: Deadline) -> Exchange:
        sent.append(order)
        return request(self, order, deadline)

    monkeypatch.setattr(CandidateHandle, "request", requesting)
    limit, expected = Deadline.after(10), lay_out([INPUT, 1234.5, "secret"]).node
    with fresh_candidate(sit(make_judging(SORTED)), ROOM, None) as candidate:
        for wanted in (lay_out(INPUT).node, expected, expected):
            candidate.call(Operation.TOUCH, INPUT, wanted, limit)

    (told,) = sent
    assert b'"expect"' in told
    assert (1234.5).hex().encode() not in told
    assert b"secret" not in told


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (TensorNode(dtype="float32", shape=(3,), stride=(1,), device="cuda"), "device cuda"),
        (TensorNode(dtype="strange", shape=(3,), stride=(1,)), "type strange"),
        (TensorNode(dtype="float32", shape=(3,), stride=(1,), address=8), "cannot be read"),
        (FloatNode(value="no number"), "invalid hexadecimal"),
        (FloatNode(value="0x1p99999"), "too large"),
        (nested(33), "nested more than 32 deep"),
        (
            TensorNode(dtype="uint8", shape=(1 << 48, 1 << 48, 0), stride=(1, 1, 1)),
            "cannot be laid out",
        ),
    ],
)
def test_a_description_of_nothing_is_a_wrong_answer(sit: Sit, output: Node, words: str) -> None:
    with (
        fresh_candidate(sit(make_judging()), ROOM, None) as candidate,
        pytest.raises(VerdictError, match=words) as ruling,
    ):
        described(candidate, output)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_many_outputs_together_may_not_exceed_the_memory_limit(sit: Sit) -> None:
    session = sit(make_judging(limits=Limits(memory=64 << 20)))
    with fresh_candidate(session, ROOM, None) as candidate:
        wide = TensorNode(dtype="uint8", shape=(20 << 20,), stride=(0,), address=candidate.base)
        assert described(candidate, wide).numel() == 20 << 20

        both = SequenceNode(kind="list", items=(wide, wide))
        with pytest.raises(VerdictError, match="larger than the memory limit"):
            described(candidate, both)


def test_the_gaps_of_an_output_count_against_the_memory_limit(sit: Sit) -> None:
    session = sit(make_judging(limits=Limits(memory=64 << 20)))
    with fresh_candidate(session, ROOM, None) as candidate:
        sparse = TensorNode(dtype="uint8", shape=(2,), stride=(40 << 20,), address=candidate.base)
        assert described(candidate, sparse).shape == (2,)

        both = SequenceNode(kind="list", items=(sparse, sparse))
        with pytest.raises(VerdictError, match="larger than the memory limit"):
            described(candidate, both)


def test_another_structure_than_expected_is_refused_before_any_of_it_is_read(sit: Sit) -> None:
    expected = lay_out(torch.zeros(3)).node
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        nowhere = TensorNode(dtype="float32", shape=(4,), stride=(1,), address=8)
        with pytest.raises(VerdictError, match=r"has shape \[4\], \[3\] is expected") as ruling:
            described(candidate, nowhere, expected)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_reading_an_output_ends_at_the_deadline(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        here = TensorNode(dtype="uint8", shape=(3,), stride=(1,), address=candidate.base)
        with pytest.raises(VerdictError, match="time limit") as ruling:
            described(candidate, here, seconds=-1)

    assert ruling.value.verdict is Verdict.TIMED_OUT


def test_one_large_output_is_not_read_to_its_end_after_the_deadline(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([1.0, -1.0])  # the time passes while the first piece is copied
    monkeypatch.setattr(process, "PIECE", 8)
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        hollow = TensorNode(dtype="uint8", shape=(2,), stride=(15,), address=candidate.base)
        with monkeypatch.context() as patched:
            patched.setattr(Deadline, "remaining", property(lambda _: next(looks)))
            with pytest.raises(VerdictError, match="time limit") as ruling:
                described(candidate, hollow)

    assert ruling.value.verdict is Verdict.TIMED_OUT
    assert not list(looks)


def test_an_output_with_gaps_gives_its_own_elements_of_an_input_back(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        candidate.arena.write(ROOM.node, INPUT)
        ends = TensorNode(dtype="float32", shape=(2,), stride=(2,), address=candidate.base)
        reply = CandidateReply(status=Status.DONE, output=ends)
        numbers = view(candidate.arena.buffer, tensors(ROOM.node)[0])
        numbers[::2] += 1
        candidate.refuse_changes(INPUT, reply)

        numbers[1] += 1
        with pytest.raises(VerdictError, match="changed an input"):
            candidate.refuse_changes(INPUT, reply)


def test_an_output_of_any_type_may_be_at_an_odd_address_of_an_input(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        candidate.arena.write(ROOM.node, INPUT)
        odd = TensorNode(
            dtype="complex128", shape=(8, 8), stride=(1, 0), address=candidate.base + 1
        )
        reply = CandidateReply(status=Status.DONE, output=odd)
        numbers = view(candidate.arena.buffer, tensors(ROOM.node)[0])
        numbers[1] += 1
        candidate.refuse_changes(INPUT, reply)

        numbers[0] += 1  # its first byte is not in the output
        with pytest.raises(VerdictError, match="changed an input"):
            candidate.refuse_changes(INPUT, reply)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.empty(80 << 20, dtype=torch.uint8), "exceeds the memory limit"),
        ([torch.zeros(1)] * 2000, "too many parts"),
        (torch.empty(3, dtype=torch.bits8), "bits8"),
        (torch.zeros(3, device="meta"), "device meta"),
        (torch.eye(3).to_sparse(), "of layout torch.sparse_coo"),
        ({1, 2}, "type set"),
    ],
    ids=["large", "many parts", "dtype", "device", "sparse", "set"],
)
def test_an_input_that_cannot_travel_is_the_tasks_fault(
    sit: Sit, value: object, words: str
) -> None:
    session = sit(make_judging(limits=Limits(memory=64 << 20)))
    with (
        fresh_candidate(session, ROOM, None) as candidate,
        pytest.raises(VerdictError, match=words) as ruling,
    ):
        candidate.call(Operation.TOUCH, value, None, Deadline.after(10))

    assert ruling.value.verdict is Verdict.TASK_ERROR


@pytest.mark.parametrize(
    ("processes", "gpu", "threads"),
    [(4, False, 2), (4, True, 1), (64, False, 32), (64, True, 16), (1000, True, 40)],
)
def test_torch_may_use_every_core_that_the_limit_leaves(
    *, monkeypatch: pytest.MonkeyPatch, processes: int, gpu: bool, threads: int
) -> None:
    monkeypatch.setattr(host_candidate, "CORES", 40)

    assert threads_of(Limits(processes=processes), gpu=gpu) == threads


def test_a_reply_without_an_output_is_refused(sit: Sit) -> None:
    with (
        fresh_candidate(sit(make_judging()), ROOM, None) as candidate,
        pytest.raises(VerdictError) as ruling,
    ):
        described(candidate, None)

    assert ruling.value.verdict is Verdict.DISALLOWED


def test_changes_without_an_answer_are_not_looked_for(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        candidate.refuse_changes(INPUT, CandidateReply(status=Status.DONE))
        with pytest.raises(VerdictError, match="changed an input"):  # nobody laid it in the arena
            candidate.refuse_changes(
                INPUT, CandidateReply(status=Status.DONE, output=ScalarNode(value=1))
            )


def test_on_the_cpu_there_is_one_way_to_call(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging()), ROOM, None) as candidate:
        exchange = candidate.call(Operation.TOUCH, INPUT, None, Deadline.after(10))

        assert (candidate.ahead, candidate.remote, candidate.discovered) == (False, False, None)
        assert (exchange.late, candidate.slowed_by()) == (False, ())


def test_a_build_that_fails_is_of_the_stage_in_which_it_fell(sit: Sit) -> None:
    with (
        fresh_candidate(sit(make_judging("x = (")), ROOM, None) as candidate,
        pytest.raises(VerdictError) as ruling,
    ):
        candidate.build(Deadline.after(10))

    assert (ruling.value.verdict, ruling.value.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)


WRITING = """
import os
from pathlib import Path
made = Path(os.environ["TORCH_EXTENSIONS_DIR"]) / "made"
FOUND = made.exists()
made.parent.mkdir(parents=True, exist_ok=True)
made.touch()
def custom_kernel(data):
    return FOUND
"""


@pytest.mark.parametrize("packed", [True, False])
def test_what_was_packed_lies_ready_when_a_later_candidate_builds(
    *, sit: Sit, packed: bool
) -> None:
    session = sit(make_judging(WRITING))
    limit = Deadline.after(10)
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(limit)
        candidate.pack(limit)
    session.builds.packed = packed
    session.builds.seal()

    assert answered(session) is packed


def test_packing_what_is_too_much_is_refused_as_a_write_is(sit: Sit) -> None:
    request = make_judging(
        WRITING.replace("made.touch()", "made.write_bytes(bytes(1 << 21))"),
        limits=Limits(disk=4 << 20),
    )
    session = sit(request)
    session.builds.close()
    session.builds = Builds(1 << 20)
    with fresh_candidate(session, ROOM, None) as candidate:
        candidate.build(Deadline.after(10))
        with pytest.raises(VerdictError, match="cannot be stored"):
            candidate.pack(Deadline.after(10))
        session.builds.close()
        session.builds = Builds(1 << 20)


def test_a_kernel_has_the_threads_by_which_its_time_is_bounded(sit: Sit) -> None:
    request = make_judging(COUNTING, limits=Limits(processes=1000))

    assert answered(sit(request)) == len(os.sched_getaffinity(0))


REPLACED = """
import os, sys
def custom_kernel(data):
    os.execv(sys.executable, ["python", "-I", "-S", "-c", "import time; time.sleep(60)"])
"""


def test_a_candidate_that_replaces_its_program_is_refused(sit: Sit) -> None:
    with fresh_candidate(sit(make_judging(REPLACED)), ROOM, None) as candidate:
        candidate.build(Deadline.after(10))
        checks.refuse_other_program(candidate.handle.process)
        with pytest.raises(VerdictError, match="closed its socket"):
            candidate.call(Operation.RUN, INPUT, None, Deadline.after(1))
        with pytest.raises(VerdictError, match="replaced the candidate's program"):
            checks.refuse_other_program(candidate.handle.process)
