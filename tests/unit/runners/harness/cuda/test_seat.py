"""What of the seat on a GPU needs no GPU: where outputs are wanted, and which calls count."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from runners.contract.verdict import Verdict
from runners.harness.channel import Operation, Order, Reply, Status
from runners.harness.cuda import seat
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.seat import PATIENCE_S, DeviceSeat
from runners.harness.deadline import Deadline
from runners.harness.exchange import Exchange, Turn
from runners.harness.process import UnreadableError
from runners.harness.ruling import Ruling
from runners.harness.values import (
    Node,
    ScalarNode,
    SequenceNode,
    TensorNode,
    UndescribableError,
)

BASE = 1 << 40
"""Where the candidate sees the shared memory."""
OUTPUT_AT, POOL_AT, SIZE = 4096, 8192, 1 << 20


def described(**changes: object) -> TensorNode:
    node = TensorNode(dtype="float32", shape=(2, 3), stride=(1, 2), address=64, device="cuda")
    return node.model_copy(update=changes)


def test_a_described_output_is_laid_out_anew() -> None:
    node = seat.replan(described())

    assert isinstance(node, TensorNode)
    assert (node.shape, node.stride, node.offset, node.device) == ((2, 3), (3, 1), 0, "cuda")


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "quint8"}, {"dtype": "nonsense"}, {"device": "cpu"}, {"shape": (1 << 48,) * 3}],
)
def test_an_output_that_cannot_be_laid_out_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises((UnreadableError, UndescribableError, RuntimeError)):
        seat.replan(described(**changes))


def landed(offset: int, **changes: object) -> TensorNode:
    """As a candidate describes an output that lies so far into the shared memory."""
    return described(address=BASE + offset, **changes)


def place(offset: int, **changes: object) -> TensorNode:
    """As the judge speaks of it."""
    return described(address=0, offset=offset, **changes)


EXPECTED = place(0)
AT_REST = place(OUTPUT_AT)


class Candidate:
    """Plays the candidate: answers one call after the other as it is told."""

    def __init__(self) -> None:
        self.outputs: list[Node | None] = []
        self.late: list[bool] = []
        self.orders: list[Order] = []
        self.patience: list[float] = []

    def race(self, order: bytes, deadline: Deadline, turn: Turn) -> Exchange:
        self.orders.append(Order.model_validate_json(order))
        self.patience.append(turn.patience_s)
        output = self.outputs.pop(0)
        late = self.late.pop(0) if self.late else False
        return Exchange(1.0, Reply(status=Status.DONE, output=output), late=late)


Play = Callable[..., Exchange]


@pytest.fixture
def candidate() -> Candidate:
    return Candidate()


@pytest.fixture
def device_seat(monkeypatch: pytest.MonkeyPatch, candidate: Candidate) -> DeviceSeat:
    """A seat on a GPU that is not there."""
    monkeypatch.setattr(DeviceSeat, "_prepare", lambda *_: None)
    made: DeviceSeat = object.__new__(DeviceSeat)
    memory = SimpleNamespace(size=SIZE)
    for name, value in {
        "handle": candidate,
        "arena": SimpleNamespace(size=1 << 20),
        "gate": SimpleNamespace(turn=0, abort=lambda: None),
        "buffers": SimpleNamespace(
            memory=memory, output_at=OUTPUT_AT, pool_at=POOL_AT, refuse_hoard=lambda: None
        ),
        "device_base": BASE,
        "ahead": False,
        "copies": True,
        "copied": True,
        "landed": None,
        "wanted": None,
    }.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def play(device_seat: DeviceSeat, candidate: Candidate) -> Play:
    """One call whose output the candidate says to lie there."""

    def call(
        output: Node | None,
        operation: Operation = Operation.RUN,
        *,
        value: object = 5,
        late: bool = False,
    ) -> Exchange:
        candidate.outputs.append(output)
        candidate.late.append(late)
        return device_seat.call(operation, value, EXPECTED, Deadline.after(10))

    return call


@pytest.mark.parametrize(
    "node",
    [
        landed(-4),
        landed(SIZE - 20),
        landed(SIZE),
        landed(2),
        landed(0, device="cpu"),
        landed(0, dtype="nonsense"),
        landed(0, stride=(1 << 40, 1)),
        described(address=(1 << 64) - 4),
    ],
    ids=["before", "over the end", "after", "askew", "host", "dtype", "wide", "far"],
)
def test_an_output_that_does_not_lie_in_the_shared_memory_is_not_there(
    device_seat: DeviceSeat, node: TensorNode
) -> None:
    right = SequenceNode(kind="list", items=(landed(64), ScalarNode(value=1)))
    assert device_seat._in_memory(right) == SequenceNode(
        kind="list", items=(place(64), ScalarNode(value=1))
    )
    assert device_seat._in_memory(landed(SIZE - 24)) == place(SIZE - 24)

    wrong = SequenceNode(kind="list", items=(landed(64), node))
    assert device_seat._in_memory(wrong) is None


def test_pinned_host_memory_holds_no_output(device_seat: DeviceSeat) -> None:
    device_seat.buffers.memory = object.__new__(HostBuffer)

    assert device_seat._in_memory(landed(64)) is None


def test_outputs_that_are_copied_lie_in_the_room_for_them(device_seat: DeviceSeat) -> None:
    expected = SequenceNode(
        kind="tuple", items=(place(0), place(64), described(device="cpu", offset=4096))
    )

    assert device_seat._at_landing(expected) == SequenceNode(
        kind="tuple",
        items=(place(OUTPUT_AT), place(OUTPUT_AT + 64), described(device="cpu", offset=4096)),
    )


def test_before_a_rehearsal_calls_wait_for_their_input_and_outputs_are_copied(
    play: Play, candidate: Candidate
) -> None:
    exchange = play(landed(POOL_AT))

    (order,) = candidate.orders
    assert (order.ahead, order.output) == (False, AT_REST)
    assert candidate.patience[0] > 9
    assert not exchange.spoiled


def test_trusted_calls_are_always_ahead_and_copied_to_the_room_for_it(
    play: Play, device_seat: DeviceSeat, candidate: Candidate
) -> None:
    device_seat.copies, device_seat.landed = False, place(POOL_AT)

    exchange = play(None, Operation.COPY)

    (order,) = candidate.orders
    assert (order.ahead, order.output, exchange.spoiled) == (True, AT_REST, False)
    assert candidate.patience == [PATIENCE_S]
    assert device_seat.landed == place(POOL_AT)


def test_an_output_that_lies_again_where_it_lay_is_captured_there(
    play: Play, device_seat: DeviceSeat, candidate: Candidate
) -> None:
    device_seat.rehearse(lambda: play(landed(POOL_AT)))

    assert (device_seat.ahead, device_seat.copies) == (True, False)
    exchange = play(landed(POOL_AT))
    assert not exchange.spoiled
    assert [(order.ahead, order.output) for order in candidate.orders] == [
        (True, AT_REST), (True, place(POOL_AT)), (True, place(POOL_AT)),
    ]  # fmt: skip


def test_an_output_that_wanders_is_copied(play: Play, device_seat: DeviceSeat) -> None:
    places = iter([landed(POOL_AT), landed(POOL_AT + 64)])
    device_seat.rehearse(lambda: play(next(places)))

    assert (device_seat.ahead, device_seat.copies) == (True, True)
    assert not play(landed(0)).spoiled


def test_a_kernel_that_waits_for_the_gpu_is_not_called_ahead(
    play: Play, device_seat: DeviceSeat, candidate: Candidate
) -> None:
    device_seat.rehearse(lambda: play(landed(POOL_AT), late=True))

    assert (device_seat.ahead, device_seat.copies) == (False, True)
    assert not play(landed(POOL_AT)).spoiled
    assert [order.ahead for order in candidate.orders] == [True, False]


def test_a_kernel_cannot_be_called_ahead_of_an_input_with_a_part_on_the_host(
    play: Play, device_seat: DeviceSeat, candidate: Candidate
) -> None:
    device_seat.rehearse(lambda: play(landed(POOL_AT), value=torch.zeros(3)))

    assert not device_seat.ahead
    assert not play(landed(POOL_AT), value=torch.zeros(3)).spoiled
    assert [order.ahead for order in candidate.orders] == [False, False]


def test_the_calibration_is_ahead_of_any_input_so_that_nobody_gains_by_waiting_less_than_it(
    play: Play, candidate: Candidate
) -> None:
    assert not play(None, Operation.TOUCH, value=torch.zeros(3)).late

    assert [order.ahead for order in candidate.orders] == [True]


def rehearsed(play: Play, device_seat: DeviceSeat) -> None:
    device_seat.rehearse(lambda: play(landed(POOL_AT)))


@pytest.mark.parametrize("elsewhere", [landed(POOL_AT + 64), landed(-64), None])
def test_an_output_elsewhere_than_rehearsed_spoils_its_call_and_the_next_one_is_copied(
    play: Play, device_seat: DeviceSeat, candidate: Candidate, elsewhere: Node | None
) -> None:
    rehearsed(play, device_seat)

    assert play(elsewhere).moved
    device_seat.demote(play(elsewhere))

    assert (device_seat.ahead, device_seat.copies) == (True, True)
    assert not play(elsewhere).moved
    assert candidate.orders[-1].output == AT_REST


def test_a_late_call_takes_all_later_ones_their_being_ahead(
    play: Play, device_seat: DeviceSeat
) -> None:
    rehearsed(play, device_seat)
    late = play(landed(POOL_AT), late=True)
    assert late.spoiled

    device_seat.demote(late)

    assert (device_seat.ahead, device_seat.copies) == (False, True)


@pytest.mark.parametrize(
    "forged",
    [
        landed(POOL_AT, shape=(1 << 40, 3), stride=(0, 1)),
        landed(POOL_AT, shape=(3, 2)),
        landed(POOL_AT, dtype="int8"),
        landed(POOL_AT, stride=(30_000, 1)),
        SequenceNode(kind="list", items=(landed(POOL_AT),) * 300),
    ],
    ids=["endless", "shape", "dtype", "gaps", "many"],
)
def test_a_candidate_tells_where_its_output_lies_and_nothing_else_about_it(
    play: Play, device_seat: DeviceSeat, candidate: Candidate, forged: Node
) -> None:
    rehearsed(play, device_seat)

    assert play(forged).moved  # and is not looked at
    assert not play(forged).moved  # what is looked at is in the room for copies

    assert candidate.orders[-1].output == AT_REST
    assert device_seat.landed is None


def test_whatever_ends_a_call_lets_go_of_its_window(
    device_seat: DeviceSeat,
) -> None:
    aborted: list[int] = []
    device_seat.gate.abort = lambda: aborted.append(1)  # type: ignore[method-assign]

    with pytest.raises(IndexError):  # the candidate has no answer
        device_seat.call(Operation.RUN, 5, EXPECTED, Deadline.after(10))

    assert aborted == [1]


def test_without_a_reference_an_untimed_call_tells_the_outputs_structure(
    device_seat: DeviceSeat, candidate: Candidate
) -> None:
    candidate.outputs = [landed(POOL_AT), landed(POOL_AT)]

    device_seat.call(Operation.RUN, 5, None, Deadline.after(10))

    anew = place(0, stride=(3, 1))
    assert device_seat.discovered == anew
    assert [order.output for order in candidate.orders] == [
        None, anew.model_copy(update={"offset": OUTPUT_AT}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("output", "verdict", "words"),
    [
        (None, Verdict.DISALLOWED, "described no output"),
        (described(device="cpu"), Verdict.WRONG_ANSWER, "on device cpu"),
        (described(shape=(100, 100)), Verdict.WRONG_ANSWER, "larger than this task allows"),
    ],
)
def test_a_structure_that_cannot_be_wanted_is_refused(
    device_seat: DeviceSeat,
    candidate: Candidate,
    output: Node | None,
    verdict: Verdict,
    words: str,
) -> None:
    candidate.outputs = [output]

    with pytest.raises(Ruling, match=words) as ruling:
        device_seat.call(Operation.RUN, 5, None, Deadline.after(10))

    assert ruling.value.verdict is verdict


@pytest.mark.parametrize(
    ("pinned", "ahead", "copies", "claims_count", "copies_count"),
    [
        (False, True, False, True, False),
        (False, True, True, False, False),  # the copy counts as time
        (False, False, True, False, False),
        (True, True, True, True, True),  # there is no other way
        (True, False, True, False, False),
    ],
)
def test_a_claim_counts_where_nothing_is_copied_that_could_be_left_out(
    *,
    device_seat: DeviceSeat,
    pinned: bool,
    ahead: bool,
    copies: bool,
    claims_count: bool,
    copies_count: bool,
) -> None:
    if pinned:
        device_seat.buffers.memory = object.__new__(HostBuffer)
    device_seat.ahead, device_seat.copies = ahead, copies

    assert (device_seat.claims_count, device_seat.copies_count) == (claims_count, copies_count)


def hoarding() -> None:
    raise Ruling(Verdict.MEMORY_EXCEEDED, "only 1 MiB of the GPU's memory were left")


def test_who_leaves_the_judge_no_memory_is_told_so_after_its_call(
    play: Play, device_seat: DeviceSeat
) -> None:
    device_seat.buffers.refuse_hoard = hoarding  # type: ignore[method-assign]

    assert not play(None, Operation.TOUCH).spoiled  # nobody hoards who is trusted
    with pytest.raises(Ruling, match="only 1 MiB") as ruling:
        play(landed(POOL_AT))

    assert ruling.value.verdict is Verdict.MEMORY_EXCEEDED


def test_who_leaves_the_judge_no_memory_is_told_so_after_its_import(
    device_seat: DeviceSeat, candidate: Candidate
) -> None:
    asked: list[bytes] = []
    candidate.ask = lambda order, _: asked.append(order)  # type: ignore[attr-defined]
    device_seat.build(Deadline.after(10))
    device_seat.buffers.refuse_hoard = hoarding  # type: ignore[method-assign]

    with pytest.raises(Ruling, match="only 1 MiB"):
        device_seat.build(Deadline.after(10))

    assert len(asked) == 2


def test_what_slows_the_gpu_is_asked_of_the_one_that_is_seen(
    device_seat: DeviceSeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ("hardware power brake",)
    monkeypatch.setattr(seat, "first_gpu", lambda: SimpleNamespace(slowed_by=lambda: told))

    assert device_seat.slowed_by() == told
