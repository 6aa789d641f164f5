"""What of the seat on a GPU needs no GPU: where outputs are looked for, and which calls count."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from runners.contract.evaluation import Limits
from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument
from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.gpu import buffers
from runners.harness.gpu.buffers import LINE_BYTES, Buffers, Withheld
from runners.harness.gpu.handover import FROZEN_S, HandoverCall
from runners.harness.judge import device_candidate, host_candidate
from runners.harness.judge.answer import TENSORS_MOST, Answer, Place
from runners.harness.judge.capture_times import CaptureTimes
from runners.harness.judge.device_candidate import PATIENCE_S, DeviceCandidate
from runners.harness.judge.launches import GUARD
from runners.harness.judge.poison import POISONS, SECTORS, PoisonedSectors
from runners.harness.protocol.arena import ALIGNMENT
from runners.harness.protocol.channel import (
    CandidateReply,
    CandidateRequest,
    Exchange,
    Operation,
    Status,
    encode,
)
from runners.harness.protocol.values import (
    DictNode,
    FloatNode,
    Node,
    ScalarNode,
    SequenceNode,
    TensorNode,
    UndescribableError,
    restore,
)
from runners.harness.supervision.process import UnreadableError
from runners.harness.verdicts import VerdictError

BASE = 1 << 40
"""Where the candidate sees the shared memory."""
OUTPUT_AT, POOL_AT, SIZE = 4096, 8192, 1 << 20


def described(**changes: object) -> TensorNode:
    node = TensorNode(dtype="float32", shape=(2, 3), stride=(1, 2), address=64, device="cuda")
    return node.model_copy(update=changes)


def test_a_described_output_is_laid_out_anew() -> None:
    node = buffers.replan(described())

    assert isinstance(node, TensorNode)
    assert (node.shape, node.stride, node.offset, node.device) == ((2, 3), (3, 1), 0, "cuda")


@pytest.mark.parametrize(
    "changes",
    [{"dtype": "quint8"}, {"dtype": "nonsense"}, {"device": "meta"}, {"shape": (1 << 48,) * 3}],
)
def test_an_output_that_cannot_be_laid_out_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises((UnreadableError, UndescribableError, RuntimeError)):
        buffers.replan(described(**changes))


def test_each_tensor_of_a_described_output_stays_on_its_device() -> None:
    node = buffers.replan(both(described(device="cpu"), described(), described(device="cpu")))

    assert isinstance(node, SequenceNode)
    places = [item for item in node.items if isinstance(item, TensorNode)]
    assert [(each.device, each.offset) for each in places] == [
        ("cpu", 0),
        ("cuda", 0),
        ("cpu", 8192),
    ]


def landed(offset: int, **changes: object) -> TensorNode:
    """As a candidate describes an output that lies so far into the shared memory."""
    return described(address=BASE + offset, **changes)


def place(offset: int, **changes: object) -> TensorNode:
    """As the judge speaks of it."""
    return described(address=0, offset=offset, **changes)


def flat(node: TensorNode) -> TensorNode:
    """The same numbers without gaps, row after row."""
    return node.model_copy(update={"stride": (3, 1)})


def both(*items: Node) -> SequenceNode:
    return SequenceNode(kind="tuple", items=items)


EXPECTED = place(0)
ROOM = place(OUTPUT_AT)
HOSTED = described(device="cpu", offset=4096, address=0)
BYTES = 24
"""What one of these outputs takes."""
OLD = 7
"""Lies in every byte of the shared memory before a call."""


class Candidate:
    """Plays the candidate: answers one call after the other as it is told."""

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory = memory
        self.first: Node | None = None
        self.last: Node | None = None
        self.late = False
        self.work: Callable[[], None] = lambda: None
        self.orders: list[CandidateRequest] = []
        self.patience: list[float] = []
        self.frozen_s: list[float] = []
        self.in_window: list[bytes] = []
        self.steps: list[str] = []
        self.staged = 0
        """How many inputs the judge has staged."""
        self.staged_before: list[int] = []
        """How many it had staged when each call's request arrived."""
        self.poisoned: set[int] = set()
        self.early = memory
        """What it could see while the judge's flush went on."""
        self.host = 5.0
        """Lies in every number of its own host memory."""
        self.process = SimpleNamespace(read=lambda node, *_: torch.full(node.shape, self.host))

    def call_on_device(self, order: bytes, deadline: Deadline, turn: HandoverCall) -> Exchange:
        self.orders.append(CandidateRequest.model_validate_json(order))
        self.patience.append(turn.patience_s)
        self.frozen_s.append(turn.frozen_s)
        self.in_window.append(turn.withheld)
        self.staged_before.append(self.staged)
        turn.stage()
        turn.queued(None if self.late else CandidateReply(status=Status.DONE, output=self.first))
        changed = (self.memory != OLD) & (self.memory != GUARD)
        self.poisoned = set(changed.nonzero().flatten().tolist())
        if not self.orders[-1].lays_out:
            assert all(self.memory[each] in POISONS for each in self.poisoned)
        self.steps.append("open")
        turn.steps.flush_cache()
        turn.steps.reveal()
        self.early = self.memory.clone()
        turn.steps.complete()
        self.work()
        turn.steps.capture()
        reply = CandidateReply(status=Status.DONE, output=self.last)
        if turn.steps.take:
            self.steps.append("take")
            turn.steps.take(reply)
        return Exchange(1.0, reply, late=self.late)

    def end(self) -> None:
        self.steps.append("killed")

    def writes(self, offset: int, values: torch.Tensor) -> None:
        """Have the call leave these numbers there, without gaps."""
        raw = values.contiguous().view(torch.uint8).flatten()
        before = self.work

        def work() -> None:
            before()
            self.memory[offset : offset + raw.numel()] = raw

        self.work = work


Play = Callable[..., Exchange]


@pytest.fixture
def memory() -> torch.Tensor:
    return torch.full((SIZE,), OLD, dtype=torch.uint8)


@pytest.fixture
def candidate(memory: torch.Tensor) -> Candidate:
    return Candidate(memory)


@pytest.fixture
def device_seat(
    monkeypatch: pytest.MonkeyPatch, candidate: Candidate, memory: torch.Tensor
) -> DeviceCandidate:
    """A seat on a GPU that is not there, whose calls are ahead."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    made: DeviceCandidate = object.__new__(DeviceCandidate)
    staging = torch.full((OUTPUT_AT,), OLD, dtype=torch.uint8)
    withheld = Withheld(staging)
    steps = candidate.steps
    shared = SimpleNamespace(
        memory=SimpleNamespace(size=SIZE, bytes=memory),
        output_at=OUTPUT_AT,
        pool_at=POOL_AT,
        check_free_memory=lambda: None,
        reveal=lambda: steps.append("reveal"),
        complete=lambda: withheld.reveal(memory[:OUTPUT_AT]),
        flush_cache=lambda: None,
        staging=staging,
        withheld=withheld,
    )
    answer: Answer = object.__new__(Answer)
    answer.buffers, answer.base, answer.remote = cast("Buffers", shared), BASE, False
    answer.output_at = OUTPUT_AT
    answer.capture_times = None
    answer.captured = torch.zeros(POOL_AT - OUTPUT_AT, dtype=torch.uint8)
    for name, value in {
        "session": SimpleNamespace(
            request=SimpleNamespace(limits=Limits()),
            launching=None,
            builds=SimpleNamespace(packed=True),
        ),
        "handle": candidate,
        "arena": SimpleNamespace(size=1 << 20, buffer=None),
        "base": 0,
        "host_input": SimpleNamespace(
            stage=lambda *_: None,
            reveal=lambda: steps.append("reveal host"),
            complete=lambda: None,
            restore=lambda: None,
        ),
        "handover": SimpleNamespace(turn=0, abort=lambda: steps.append("abort")),
        "buffers": shared,
        "place": Place(0, answer, staging, withheld),
        "device_base": BASE,
        "ahead": True,
        "remote": False,
        "told": True,
        "withholds": False,
        "staged": None,
        "touches": {},
        "usual": None,
    }.items():
        setattr(made, name, value)
    return made


@pytest.fixture
def play(device_seat: DeviceCandidate, candidate: Candidate) -> Play:
    """One call whose output the candidate says to lie there."""

    def call(
        first: Node | None,
        operation: Operation = Operation.RUN,
        *,
        expected: Node | None = EXPECTED,
        value: object = 5,
        last: Node | None = None,
        late: bool = False,
        **options: Any,  # noqa: ANN401 - handed on
    ) -> Exchange:
        candidate.first, candidate.last, candidate.late = first, last, late
        deadline = Deadline.after(10)
        return device_seat.call(operation, value, expected, deadline, **options)

    return call


def spread(*offsets: int) -> set[int]:
    return {offset + step for offset in offsets for step in range(BYTES)}


def fetched(device_seat: DeviceCandidate, exchange: Exchange) -> object:
    return device_seat.fetch(exchange.reply, EXPECTED, Deadline.after(10))


VALUES = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("offset", [0, 64, OUTPUT_AT, POOL_AT, POOL_AT + 4, SIZE - BYTES])
def test_an_output_is_read_where_the_first_frame_says_from_memory_poisoned_before(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate, offset: int
) -> None:
    candidate.writes(offset, VALUES)

    exchange = play(flat(landed(offset)))

    assert candidate.poisoned == spread(offset)
    assert torch.equal(fetched(device_seat, exchange), VALUES)  # type: ignore[arg-type]
    assert not exchange.late


def test_an_output_that_is_not_written_at_its_address_is_poison(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.writes(POOL_AT, VALUES)
    play(flat(landed(POOL_AT)))  # right, and still there at the next call
    candidate.work = lambda: None
    candidate.memory[POOL_AT + BYTES :] = OLD

    found = fetched(device_seat, play(flat(landed(POOL_AT))))

    assert (found.isnan() | (found > 1e36)).all()  # type: ignore[attr-defined, operator]


def test_the_judges_copy_is_as_it_was_when_the_window_closed(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.writes(POOL_AT, VALUES)

    exchange = play(flat(landed(POOL_AT)))
    candidate.memory.fill_(0)

    assert torch.equal(fetched(device_seat, exchange), VALUES)  # type: ignore[arg-type]


def test_every_tensor_of_an_output_has_a_place_and_strides_of_its_own(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.writes(POOL_AT, VALUES)
    candidate.writes(128, VALUES.T + 10)

    exchange = play(both(flat(landed(POOL_AT)), landed(128)), expected=both(place(0), place(64)))

    assert candidate.poisoned == spread(POOL_AT, 128)
    found = fetched(device_seat, exchange)
    assert [each.tolist() for each in found] == [  # type: ignore[attr-defined]
        VALUES.tolist(), (VALUES + 10).tolist(),
    ]  # fmt: skip


def test_a_call_with_other_scalars_than_calibration_gets_them_in_its_window(
    play: Play, candidate: Candidate
) -> None:
    play(ROOM, Operation.TOUCH, value=5)
    usual, other = play(flat(landed(POOL_AT)), value=5), play(ROOM, value=6)

    _, known, hidden = candidate.orders
    assert (known.value, known.ahead, usual.late) == (ScalarNode(value=5), True, False)
    assert (hidden.value, hidden.ahead, other.late) == (ScalarNode(), False, True)
    assert candidate.in_window == [b"", b"", b"[6]"]
    assert (usual.in_rooms, other.in_rooms) == (False, True)  # of either, the judge can read it


def test_once_scalars_differ_the_usual_ones_are_withheld_too(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    device_seat.ahead, device_seat.withholds = False, True
    play(ROOM, Operation.TOUCH, value=5)
    exchanges = [play(ROOM, value=5), play(ROOM, value=6)]

    assert [each.value for each in candidate.orders[1:]] == [ScalarNode(), ScalarNode()]
    assert candidate.in_window == [b"", b"[5]", b"[6]"]
    assert not any(each.late for each in exchanges), "so their answers are checked"


HOST = described(device="cpu", address=4)
ON_HOST = {
    "a host tensor": (HOSTED, HOST),
    "a float": (FloatNode(value="0x0p0"), FloatNode(value="0x1p0")),
    "an integer": (ScalarNode(value=0), ScalarNode(value=5)),
    "a truth value": (ScalarNode(value=False), ScalarNode(value=True)),
    "a text": (ScalarNode(value=""), ScalarNode(value="five")),
}
"""What of an answer lies on the host: as it is expected, and as a candidate tells it."""


@pytest.mark.parametrize(("expected", "told"), ON_HOST.values(), ids=ON_HOST)
@pytest.mark.parametrize("operation", [Operation.RUN, Operation.TOUCH])
def test_the_host_part_of_an_output_is_copied_before_the_window_closes(
    play: Play,
    device_seat: DeviceCandidate,
    candidate: Candidate,
    operation: Operation,
    expected: Node,
    told: Node,
) -> None:
    device_seat.ahead = False
    candidate.writes(OUTPUT_AT, VALUES)

    last = DictNode(items=(("a", both(flat(landed(POOL_AT)), told)), ("b", ScalarNode())))
    wanted = DictNode(items=(("a", both(flat(EXPECTED), expected)), ("b", ScalarNode())))
    exchange = play(None, operation, expected=wanted, last=last)
    candidate.host = 7.0  # what comes later does not exist

    assert candidate.steps == ["open", "reveal host", "reveal", "take"]
    if operation is Operation.RUN:
        found = device_seat.fetch(exchange.reply, wanted, Deadline.after(10))
        value: Any = restore(told, lambda node: torch.full(node.shape, 5.0))
        assert torch.equal(found["a"][0], VALUES)
        assert torch.equal(found["a"][1], value) if told is HOST else found["a"][1] == value


@pytest.mark.parametrize("expected", [each for each, _ in ON_HOST.values()], ids=ON_HOST)
def test_a_call_whose_answer_lies_on_the_host_is_never_ahead(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate, expected: Node
) -> None:
    wanted = both(EXPECTED, expected)

    assert play(None, expected=wanted, last=wanted).late

    assert [order.ahead for order in candidate.orders] == [False]


@pytest.mark.parametrize(
    ("last", "words"),
    [(HOST, "is a tensor, a tuple is expected"), (both(landed(0), landed(0)), "device cuda"),
     (None, "described no output")],
)  # fmt: skip
def test_an_answer_that_is_told_otherwise_than_it_must_be_is_refused_in_the_window(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate, last: Node | None, words: str
) -> None:
    device_seat.ahead = False

    with pytest.raises(VerdictError, match=words):
        play(None, expected=both(EXPECTED, HOSTED), last=last)

    assert candidate.steps[-3:] == ["take", "killed", "abort"]


def test_a_host_tensor_that_cannot_be_read_is_a_wrong_answer(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    def read(*_: object) -> None:
        raise UnreadableError("the output cannot be read: Bad address")

    device_seat.ahead = False
    candidate.process = SimpleNamespace(read=read)

    with pytest.raises(VerdictError, match="Bad address") as ruling:
        play(None, expected=HOSTED, last=HOST)

    assert ruling.value.verdict is Verdict.WRONG_ANSWER


def test_an_empty_host_tensor_is_nothing_to_wait_for(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    empty: dict[str, object] = {"shape": (0, 3), "stride": (3, 1)}
    candidate.writes(POOL_AT, VALUES)
    told = both(flat(landed(POOL_AT)), described(device="cpu", address=4, **empty))

    wanted = both(place(0), described(device="cpu", **empty))
    exchange = play(told, expected=wanted)

    assert (exchange.late, "take" in candidate.steps) == (False, False)
    found = device_seat.fetch(exchange.reply, wanted, Deadline.after(10))
    assert (torch.equal(found[0], VALUES), found[1].shape) == (True, (0, 3))


@pytest.mark.parametrize("second", [POOL_AT, POOL_AT + 4])
def test_two_outputs_that_share_memory_are_refused(
    play: Play, candidate: Candidate, second: int
) -> None:
    """The judge's second copy would find them in the cache; trusted code copies the second."""
    candidate.writes(POOL_AT, VALUES)
    one, other = flat(landed(POOL_AT)), flat(landed(second))

    with pytest.raises(VerdictError, match="is not in the memory that the judge reads"):
        play(both(one, other), expected=both(place(0), place(64)))


WITHOUT = Verdict.DISALLOWED, "is not in the memory that the judge reads"


@pytest.mark.parametrize(
    ("node", "verdict", "words"),
    [
        (landed(-4), *WITHOUT),
        (landed(SIZE - BYTES + 4), *WITHOUT),
        (landed(SIZE), *WITHOUT),
        (landed(2), *WITHOUT),
        (described(address=(1 << 64) - 4), *WITHOUT),
        (landed(POOL_AT, stride=(3, 2)), *WITHOUT),
        (landed(POOL_AT, stride=(1, 0)), *WITHOUT),
        (landed(POOL_AT, stride=(5, 0)), *WITHOUT),
        (landed(0, stride=(1 << 40, 1)), *WITHOUT),
        (None, Verdict.DISALLOWED, "described no output"),
        (landed(0, device="cpu"), Verdict.WRONG_ANSWER, "device cpu, cuda is expected"),
        (landed(0, dtype="nonsense"), Verdict.WRONG_ANSWER, "dtype nonsense"),
        (landed(0, dtype="int8"), Verdict.WRONG_ANSWER, "dtype int8"),
        (landed(0, shape=(3, 2)), Verdict.WRONG_ANSWER, r"shape \[3, 2\]"),
        (landed(0, shape=(1 << 40, 3), stride=(0, 1)), Verdict.WRONG_ANSWER, "shape"),
        (both(landed(0)), Verdict.WRONG_ANSWER, "is a tuple, a tensor is expected"),
        (ScalarNode(value=1), Verdict.WRONG_ANSWER, "is a int"),
    ],
    ids=[
        "before", "over the end", "after", "askew", "far", "larger than its room",
        "smaller than its room", "as large as its room with fewer elements", "wide",
        "none", "host", "no dtype", "dtype", "shape", "endless", "structure", "scalar",
    ],
)  # fmt: skip
def test_an_output_that_cannot_be_looked_at_is_refused_before_the_window_opens(
    play: Play, candidate: Candidate, node: Node | None, verdict: Verdict, words: str
) -> None:
    with pytest.raises(VerdictError, match=words) as ruling:
        play(node)

    assert ruling.value.verdict is verdict
    assert candidate.steps == ["killed", "abort"]
    assert candidate.memory.eq(OLD).all()


def test_one_tensor_that_cannot_be_looked_at_is_enough(play: Play) -> None:
    with pytest.raises(VerdictError, match="is not in the memory that the judge reads"):
        play(both(landed(64), landed(2)), expected=both(place(0), place(64)))


def test_an_output_without_elements_lies_nowhere(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    empty = {"shape": (0, 3), "stride": (3, 1)}

    play(described(address=0, **empty), expected=place(0, **empty))

    assert (candidate.poisoned, candidate.steps) == (set(), ["open", "reveal host", "reveal"])


def test_only_the_claim_of_the_last_frame_of_a_call_ahead_is_used(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.writes(POOL_AT, VALUES)
    first = flat(landed(POOL_AT))

    for last in (None, flat(landed(64)), landed(2), both(first), first):
        exchange = play(first, last=last)
        assert exchange.reply.output == first
        assert torch.equal(fetched(device_seat, exchange), VALUES)  # type: ignore[arg-type]
        candidate.memory.fill_(OLD)


@pytest.mark.parametrize("waiting", [True, False])
def test_the_calibration_kernel_waits_for_its_input_only_if_it_is_to(
    play: Play, candidate: Candidate, *, waiting: bool
) -> None:
    play(EXPECTED, Operation.TOUCH, waiting=waiting)

    assert candidate.orders[-1].ahead is not waiting


def test_a_call_that_waits_for_its_input_leaves_its_output_in_the_room_for_it(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    device_seat.ahead = False
    candidate.writes(OUTPUT_AT, VALUES)
    elsewhere = flat(landed(POOL_AT))

    exchange = play(None, expected=flat(EXPECTED), last=elsewhere)

    (order,) = candidate.orders
    assert (order.ahead, order.rooms) == (False, (flat(ROOM),))
    assert candidate.patience[0] > 9
    assert candidate.poisoned == spread(OUTPUT_AT)
    assert (exchange.late, exchange.reply.output) == (False, elsewhere)
    assert torch.equal(fetched(device_seat, exchange), VALUES)  # type: ignore[arg-type]


def test_a_call_that_waits_for_its_input_has_to_describe_the_right_structure_at_last(
    play: Play, device_seat: DeviceCandidate
) -> None:
    device_seat.ahead = False
    exchange = play(landed(0), last=both(landed(0)))

    with pytest.raises(VerdictError, match="is a tuple"):
        fetched(device_seat, exchange)


def test_through_host_memory_an_output_is_copied_into_its_room_wherever_it_lies(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    device_seat.remote = device_seat.answer.remote = True
    candidate.writes(OUTPUT_AT, VALUES)

    exchange = play(described(address=3), expected=flat(EXPECTED))

    assert candidate.orders[0].ahead
    assert candidate.poisoned == spread(OUTPUT_AT)
    assert torch.equal(fetched(device_seat, exchange), VALUES)  # type: ignore[arg-type]
    with pytest.raises(VerdictError, match="is a tuple"):
        play(both(described(address=3)), expected=EXPECTED)


def test_the_rooms_lie_beyond_the_input_and_a_host_tensor_has_none(
    device_seat: DeviceCandidate,
) -> None:
    device_seat.answer.expect(both(place(0), place(64), HOSTED))

    assert device_seat.answer.rooms == (place(OUTPUT_AT), place(OUTPUT_AT + 64), HOSTED)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("operation", [Operation.RUN, Operation.TOUCH])
def test_of_the_right_output_a_candidate_is_told_its_tensors_places_and_nothing_else(
    *,
    play: Play,
    device_seat: DeviceCandidate,
    candidate: Candidate,
    operation: Operation,
    ahead: bool,
) -> None:
    device_seat.ahead = ahead
    expected = DictNode(
        items=(
            ("the key", FloatNode(value=(0.1234567).hex())),
            ("another", both(place(0), ScalarNode(value=987_654), ScalarNode(value="the answer"))),
        )
    )
    told = DictNode(
        items=(
            ("the key", FloatNode(value="0x0p0")),
            ("another", both(landed(0), ScalarNode(value=0), ScalarNode(value=""))),
        )
    )

    play(told, operation, expected=expected, last=told)

    (order,) = candidate.orders
    text = encode(order).decode()
    assert order.rooms == (ROOM,)
    assert not [each for each in ("key", "another", "1.f9a", "987654", "answer") if each in text]


WIDE = 1 << 16
"""Room for outputs that take whole pages."""


LINE = CaptureTimes((10, 20), ((1.0, 3.0),))
"""Copies of so many bytes take so many nanoseconds."""


@pytest.fixture
def timed_copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, object]]:
    """The buffers for which copies were timed, and where these went."""
    timed: list[tuple[object, object]] = []

    def measure(of: object, captured: object) -> CaptureTimes:
        timed.append((of, captured))
        return LINE

    monkeypatch.setattr(CaptureTimes, "measure", measure)
    return timed


@pytest.fixture
def wide_seat(
    device_seat: DeviceCandidate, timed_copies: list[tuple[object, object]]
) -> DeviceCandidate:
    """A seat with that much room, whose candidate is not told the rooms."""
    device_seat.buffers.pool_at = OUTPUT_AT + WIDE
    device_seat.answer.captured = torch.zeros(WIDE, dtype=torch.uint8)
    device_seat.told = False
    return device_seat


@pytest.mark.parametrize(("at", "told"), [(OUTPUT_AT, True), (POOL_AT, True), (OUTPUT_AT, False)])
def test_some_sectors_of_an_output_are_poisoned_again_after_the_flush(
    *,
    play: Play,
    wide_seat: DeviceCandidate,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
    at: int,
    told: bool,
) -> None:
    """A copy engine, or a kernel in its own time slice, wrote zeros behind the first poison."""
    count = WIDE // 8
    monkeypatch.setattr(wide_seat.buffers, "reveal", candidate.memory[at : at + 4 * count].zero_)
    wide_seat.told = told
    expected = place(0, shape=(count,), stride=(1,))
    found_at = landed(at, shape=(count,), stride=(1,))

    exchange = play(found_at, expected=expected, last=found_at)

    found: Any = wide_seat.fetch(exchange.reply, expected, Deadline.after(10))
    wrong = (found != 0).view(-1, 8)  # numbers of a sector
    assert torch.equal(wrong.any(1), wrong.all(1))
    assert 0 < wrong.any(1).sum() <= SECTORS


def test_an_output_in_an_input_is_not_poisoned_again(
    play: Play,
    wide_seat: DeviceCandidate,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wide_seat.told = True
    monkeypatch.setattr(wide_seat.buffers, "reveal", candidate.memory[:OUTPUT_AT].zero_)
    monkeypatch.setattr(wide_seat.buffers, "complete", lambda: None)
    inside = landed(0, shape=(256,), stride=(1,))

    exchange = play(inside, expected=place(0, shape=(256,), stride=(1,)), last=inside)

    assert not wide_seat.fetch(exchange.reply, inside, Deadline.after(10)).any()


@pytest.mark.parametrize("ahead", [True, False])
def test_where_the_right_structure_depends_on_the_input_a_candidate_is_told_nothing_of_it(
    *, play: Play, wide_seat: DeviceCandidate, candidate: Candidate, ahead: bool
) -> None:
    """It lays out its output by its own structure; the judge reads where a right one would be."""
    wide_seat.ahead = ahead
    numbers, truths = place(0), place(0, dtype="bool", shape=(777,), stride=(1,))
    expected = DictNode(items=(("z", numbers), ("a", truths)))
    page = 2 * 4096  # what the first of both in the order of their keys takes
    told = DictNode(
        items=(
            ("a", truths.model_copy(update={"address": BASE + OUTPUT_AT})),
            ("z", flat(landed(OUTPUT_AT + page))),
        )
    )
    right = torch.arange(777) % 2 == 0
    candidate.writes(OUTPUT_AT, right)
    candidate.writes(OUTPUT_AT + page, VALUES)

    exchange = play(told, expected=expected, last=told)

    (order,) = candidate.orders
    assert (order.rooms, order.lays_out) == ((), True)
    assert "777" not in encode(order).decode()
    found: Any = wide_seat.fetch(exchange.reply, expected, Deadline.after(10))
    assert list(found) == ["z", "a"]
    assert torch.equal(found["z"], VALUES)
    assert torch.equal(found["a"], right)


def test_an_output_of_another_structure_than_the_right_one_of_its_input_is_wrong(
    play: Play, wide_seat: DeviceCandidate
) -> None:
    wide_seat.ahead = False
    exchange = play(None, last=landed(OUTPUT_AT, shape=(3, 3), stride=(3, 1)))
    with pytest.raises(VerdictError, match=r"shape \[3, 3\], \[2, 3\] is expected"):
        fetched(wide_seat, exchange)


@pytest.mark.parametrize(
    "dtypes",
    [
        ("float32",),
        ("bool",),
        ("float32", "int64"),
        ("uint8",),
        ("float32", "bool"),
        ("bool", "bool", "int8"),
    ],
)
def test_the_end_of_the_poison_does_not_tell_how_large_a_right_output_is(
    wide_seat: DeviceCandidate, memory: torch.Tensor, dtypes: tuple[str, ...]
) -> None:
    patterns = set()
    for _ in range(64):
        nodes = [place(0, dtype=each, shape=(3, 5), stride=(5, 1)) for each in dtypes]
        wide_seat.answer.expect(both(*nodes), told=False)
        wide_seat.answer.expect_at(wide_seat.answer.room)
        pairs = memory[OUTPUT_AT : OUTPUT_AT + WIDE].view(-1, 2)
        assert (pairs == pairs[0]).all()
        patterns.add(tuple(pairs[0].tolist()))
        outside = torch.cat((memory[:OUTPUT_AT], memory[OUTPUT_AT + WIDE :]))
        assert outside.eq(OLD).all()
        if dtypes[0] == "float32":
            unwritten = memory[OUTPUT_AT : OUTPUT_AT + 60].view(torch.float32)
            assert (unwritten.abs() > 1e33).all()

    assert len(patterns) > 1


@pytest.mark.parametrize("unwritten", [0, 1, 776])
def test_a_truth_that_still_is_the_hidden_poison_is_wrong(
    play: Play, wide_seat: DeviceCandidate, candidate: Candidate, unwritten: int
) -> None:
    """For torch any byte but zero is true."""
    truths = place(0, dtype="bool", shape=(777,), stride=(1,))
    told = truths.model_copy(update={"address": BASE + OUTPUT_AT})
    right = torch.ones(777, dtype=torch.bool)
    candidate.writes(OUTPUT_AT, right[:unwritten])
    candidate.writes(OUTPUT_AT + unwritten + 1, right[unwritten + 1 :])

    exchange = play(told, expected=truths, last=told)

    with pytest.raises(VerdictError, match="some truths were not written") as ruling:
        wide_seat.fetch(exchange.reply, truths, Deadline.after(10))
    assert ruling.value.verdict is Verdict.WRONG_ANSWER


@pytest.mark.parametrize("ahead", [True, False])
def test_a_window_counts_as_if_the_output_were_as_large_as_that_of_calibration(
    *,
    play: Play,
    wide_seat: DeviceCandidate,
    timed_copies: list[tuple[object, object]],
    ahead: bool,
) -> None:
    """Otherwise outputs larger than that of a small calibration made honest claims seem too low."""
    small = place(0, shape=(3,), stride=(1,))
    told = both(flat(landed(OUTPUT_AT)), flat(landed(OUTPUT_AT + 8192)))
    wide_seat.ahead = ahead
    nothing = place(0, shape=(0, 3), stride=(3, 1))
    for late in (False, True):  # a late call of calibration has an output of the same size
        calibrated = play(
            None, Operation.TOUCH, expected=both(small, small, nothing, HOSTED), late=late
        )
        assert calibrated.window_ns == 1.0

    exchange = play(told, expected=both(EXPECTED, EXPECTED), last=told)

    assert exchange.window_ns == pytest.approx(1.0 - 2 * 0.2 * (24 - 12))
    assert timed_copies == [(wide_seat.buffers, wide_seat.answer.captured)]


def test_where_all_outputs_have_one_size_no_copy_is_timed(
    play: Play, device_seat: DeviceCandidate
) -> None:
    play(None, Operation.TOUCH)
    assert play(flat(landed(POOL_AT))).window_ns == 1.0
    assert device_seat.answer.capture_times is None


def test_device_code_and_calibration_are_told_the_rooms(
    play: Play, wide_seat: DeviceCandidate, candidate: Candidate
) -> None:
    play(None, Operation.TOUCH)
    play(None, expected=ROW, launch=INTO_OUTPUT)
    assert [each.lays_out for each in candidate.orders] == [False, False]
    assert [len(each.rooms) for each in candidate.orders] == [1, 1]


def test_trusted_calls_are_always_ahead_and_lie_in_the_room_whatever_they_say(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    device_seat.ahead = False

    exchange = play(both(landed(2)), Operation.TOUCH)

    (order,) = candidate.orders
    assert (order.ahead, order.rooms, exchange.late) == (True, (ROOM,), False)
    assert candidate.patience == [PATIENCE_S]
    assert candidate.poisoned == spread(OUTPUT_AT)


def test_a_trusted_call_needs_no_output(play: Play, candidate: Candidate) -> None:
    play(None, Operation.TOUCH, expected=None)

    assert (candidate.orders[0].rooms, candidate.poisoned) == ((), set())


def test_of_a_late_call_nothing_is_known(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.writes(POOL_AT, VALUES)
    play(flat(landed(POOL_AT)))  # in time, and right
    candidate.memory.fill_(OLD)
    device_seat.answer.captured.fill_(OLD)

    exchange = play(None, last=flat(landed(POOL_AT)), late=True)

    assert exchange.late
    assert candidate.patience[-1] == PATIENCE_S
    assert candidate.frozen_s[-1] == FROZEN_S
    assert candidate.poisoned == set()
    assert device_seat.answer.captured.eq(OLD).all()
    with pytest.raises(VerdictError, match="described no output"):
        fetched(device_seat, exchange)


def test_a_kernel_cannot_be_called_ahead_of_an_input_with_a_part_on_the_host(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    assert play(landed(POOL_AT), value=torch.zeros(3)).late

    device_seat.ahead = False
    assert not play(landed(POOL_AT), value=torch.zeros(3)).late
    assert [order.ahead for order in candidate.orders] == [False, False]
    assert min(candidate.patience) > 9
    assert candidate.frozen_s == [0.0, 0.0]


def test_a_host_tensor_without_elements_holds_nobody_up(play: Play, candidate: Candidate) -> None:
    assert not play(landed(POOL_AT), value=torch.zeros(0)).late

    assert candidate.orders[0].ahead
    assert candidate.steps == ["open", "reveal host", "reveal"]


@pytest.mark.parametrize("operation", [Operation.RUN, Operation.TOUCH])
def test_what_lies_on_the_host_is_revealed_in_the_window_of_trusted_calls_as_well(
    play: Play, candidate: Candidate, operation: Operation
) -> None:
    play(landed(POOL_AT), operation, value=torch.zeros(3))
    play(landed(POOL_AT), operation, value=5)

    assert candidate.steps == ["open", "reveal host", "reveal"] * 2


def test_the_calibration_is_ahead_of_any_input_so_that_nobody_gains_by_waiting_less_than_it(
    play: Play, candidate: Candidate
) -> None:
    assert not play(None, Operation.TOUCH, value=torch.zeros(3)).late

    assert [order.ahead for order in candidate.orders] == [True]


def test_whatever_ends_a_call_lets_go_of_its_window(play: Play, candidate: Candidate) -> None:
    def work() -> None:
        raise KeyboardInterrupt

    candidate.work = work
    with pytest.raises(KeyboardInterrupt):
        play(landed(0))

    assert candidate.steps == ["open", "reveal host", "reveal", "killed", "abort"]


def test_an_input_that_outgrew_its_memory_is_the_tasks_fault(
    play: Play, device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = SimpleNamespace(host_size=0, device_size=OUTPUT_AT + 1, node=ScalarNode(value=5))
    monkeypatch.setattr(device_seat, "_plan", lambda _: grown)

    with pytest.raises(VerdictError, match="grew between two seeds") as ruling:
        play(landed(0))

    assert ruling.value.verdict is Verdict.TASK_ERROR


def test_without_a_reference_an_untimed_call_tells_the_outputs_structure(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    device_seat.ahead = False
    play(None, expected=None, last=landed(POOL_AT))

    anew = place(0, stride=(3, 1))
    assert device_seat.discovered == anew
    assert [order.rooms for order in candidate.orders] == [
        (), (anew.model_copy(update={"offset": OUTPUT_AT}),),
    ]  # fmt: skip
    assert [order.ahead for order in candidate.orders] == [False, False]


@pytest.mark.parametrize(
    ("output", "verdict", "words"),
    [
        (None, Verdict.DISALLOWED, "described no output"),
        (described(dtype="nonsense"), Verdict.WRONG_ANSWER, "is a nonsense tensor"),
        (described(shape=(100, 100)), Verdict.WRONG_ANSWER, "larger than this task allows"),
        (both(*(described(device="cpu"),) * 900), Verdict.WRONG_ANSWER, "at most 65536 are"),
    ],
    ids=["none", "no dtype", "large", "many"],
)
def test_a_structure_that_cannot_be_wanted_is_refused(
    play: Play, output: Node | None, verdict: Verdict, words: str
) -> None:
    with pytest.raises(VerdictError, match=words) as ruling:
        play(None, expected=None, last=output)

    assert ruling.value.verdict is verdict


def test_a_discovered_output_is_never_the_tasks_fault(
    play: Play, device_seat: DeviceCandidate
) -> None:
    device_seat.buffers.output_at = 1 << 40  # whose places take more digits to tell
    device_seat.buffers.pool_at = 1 << 41
    device_seat.answer.captured = torch.zeros(1 << 23, dtype=torch.uint8)
    verdicts = set()
    for count in (200, 256, 257, *range(500, 700, 10)):
        with pytest.raises(VerdictError) as ruling:
            play(both(), expected=None, last=both(*(landed(0),) * count))
        verdicts.add(ruling.value.verdict)

    assert Verdict.TASK_ERROR not in verdicts


def test_an_output_of_more_tensors_than_the_judges_stream_can_queue_is_refused(
    play: Play, device_seat: DeviceCandidate
) -> None:
    device_seat.answer.captured = torch.zeros(1 << 23, dtype=torch.uint8)
    device_seat.buffers.pool_at = 1 << 23
    most = both(*(landed(0),) * TENSORS_MOST)
    device_seat.answer.expect(most)

    with pytest.raises(VerdictError, match="has 257 tensors on the GPU") as of_task:
        device_seat.answer.expect(both(most, landed(0)))
    with pytest.raises(VerdictError, match="has 257 tensors on the GPU") as of_submission:
        play(None, expected=None, last=both(most, landed(0)))

    assert of_task.value.verdict is Verdict.TASK_ERROR
    assert of_submission.value.verdict is Verdict.WRONG_ANSWER


@pytest.mark.parametrize("remote", [True, False])
def test_from_host_memory_a_kernel_got_a_copy_of_its_input_to_change(
    *, device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch, remote: bool
) -> None:
    device_seat.remote = remote
    device_seat.buffers.staging = torch.zeros(OUTPUT_AT, dtype=torch.uint8)
    plan = SimpleNamespace(node=flat(EXPECTED))
    monkeypatch.setattr(device_candidate, "lay_out", lambda _: plan)
    device_seat.answer.expect(flat(EXPECTED))
    device_seat.answer.expect_at(flat(place(16)))
    device_seat.answer.capture()
    reply = CandidateReply(status=Status.DONE, output=landed(POOL_AT))

    if remote:
        device_seat.refuse_changes(None, reply)
        return
    with pytest.raises(VerdictError, match="changed an input"):
        device_seat.refuse_changes(None, reply)
    there = CandidateReply(status=Status.DONE, output=flat(landed(0)))
    with pytest.raises(VerdictError, match="changed an input"):
        device_seat.refuse_changes(None, there)  # it says so, but its answer lies elsewhere
    device_seat.answer.expect_at(flat(place(0)))
    device_seat.answer.capture()
    device_seat.refuse_changes(None, there)


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        ("float32", 1, 1),
        ("bool", 2, 2),
        ("int32", 9, 256),
        ("float8_e4m3fnuz", 9, 256),
        ("float8_e8m0fnu", 9, 256),
    ],
)
def test_what_no_kernel_wrote_has_another_value_in_each_call_unless_it_is_nan(
    device_seat: DeviceCandidate, memory: torch.Tensor, dtype: str, least: int, most: int
) -> None:
    device_seat.answer.expect(place(0, dtype=dtype))
    device_seat.answer.expect_at(place(POOL_AT, dtype=dtype))
    poisons = set()
    for _ in range(200):
        device_seat.answer.poison()
        poisons.add(int(memory[POOL_AT]))

    assert least <= len(poisons) <= most


def test_neighbours_that_no_kernel_wrote_are_not_all_right_whatever_is_right(
    device_seat: DeviceCandidate, memory: torch.Tensor
) -> None:
    found = set()
    device_seat.answer.expect(place(0, dtype="bool"))
    device_seat.answer.expect_at(place(POOL_AT, dtype="bool"))
    for _ in range(200):
        device_seat.answer.poison()
        found.add(tuple(memory[POOL_AT : POOL_AT + 7].tolist()))
    device_seat.answer.expect(EXPECTED)
    device_seat.answer.expect_at(place(POOL_AT))
    numbers = memory[POOL_AT : POOL_AT + BYTES].view(torch.float32)

    assert found == {(0, 1, 0, 1, 0, 1, OLD), (1, 0, 1, 0, 1, 0, OLD)}
    assert numbers[::2].isnan().all()
    assert numbers[1::2].gt(1e36).all()


@pytest.mark.parametrize(
    ("offset", "across"), [(0, False), (12, True), (BYTES, True), (POOL_AT, False)]
)
@pytest.mark.parametrize("remote", [True, False])
def test_an_output_may_not_begin_in_an_input_and_end_behind_it(
    *,
    device_seat: DeviceCandidate,
    monkeypatch: pytest.MonkeyPatch,
    offset: int,
    across: bool,
    remote: bool,
) -> None:
    device_seat.remote = remote
    plan = SimpleNamespace(node=both(flat(EXPECTED), place(BYTES, shape=(0, 3))))
    monkeypatch.setattr(device_candidate, "lay_out", lambda _: plan)
    device_seat.answer.expect(flat(EXPECTED))
    device_seat.answer.expect_at(flat(place(offset)))
    reply = CandidateReply(status=Status.DONE)

    if not across or remote:
        device_seat.refuse_misplaced_output(None, reply)
        return
    with pytest.raises(VerdictError, match="is not within one of them") as ruling:
        device_seat.refuse_misplaced_output(None, reply)
    assert ruling.value.verdict is Verdict.DISALLOWED


GAPS = place(0, shape=(4, 6), stride=(16, 1))
"""An input of rows of 24 bytes, with gaps of 40 bytes between them."""


@pytest.mark.parametrize(
    ("offset", "refused"),
    [
        (0, False),
        (64, False),
        (192, False),
        (24, True),
        (32, True),
        (60, True),
        (216, True),
        (OUTPUT_AT - BYTES, True),
        (OUTPUT_AT - 4, True),
        (OUTPUT_AT, False),
    ],
)
@pytest.mark.parametrize("shift", [0, POOL_AT])
def test_an_output_may_not_be_in_memory_that_the_judge_fills_between_and_behind_inputs(
    *,
    device_seat: DeviceCandidate,
    monkeypatch: pytest.MonkeyPatch,
    offset: int,
    refused: bool,
    shift: int,
) -> None:
    monkeypatch.setattr(device_candidate, "lay_out", lambda _: SimpleNamespace(node=GAPS))
    device_seat.place = replace(device_seat.place, shift=shift)
    device_seat.answer.output_at += shift
    device_seat.answer.expect(flat(EXPECTED))
    device_seat.answer.expect_at(flat(place(shift + offset)))
    reply = CandidateReply(status=Status.DONE)

    if not refused:
        device_seat.refuse_misplaced_output(None, reply)
        return
    with pytest.raises(VerdictError, match="is not within one of them") as ruling:
        device_seat.refuse_misplaced_output(None, reply)
    assert ruling.value.verdict is Verdict.DISALLOWED


def test_a_part_of_an_input_whose_elements_share_memory_may_be_an_output(
    device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = place(0, shape=(9, 4), stride=(1, 1))
    monkeypatch.setattr(device_candidate, "lay_out", lambda _: SimpleNamespace(node=windows))
    device_seat.answer.expect(flat(EXPECTED))
    device_seat.answer.expect_at(flat(place(16)))

    device_seat.refuse_misplaced_output(None, CandidateReply(status=Status.DONE))


@pytest.mark.parametrize("remote", [True, False])
@pytest.mark.parametrize(
    ("places", "address", "refusal"),
    [
        ({0}, 0, None),
        ({0}, 1 << 30, None),
        ({0}, 2 * ALIGNMENT, None),
        ({0, 1 << 30}, 0, "at another address"),
        ({0}, 2 * ALIGNMENT - 12, "is not within one of them"),
    ],
)
def test_a_host_output_may_not_be_the_pages_of_host_inputs_in_another_order(
    *,
    device_seat: DeviceCandidate,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
    places: set[int],
    address: int,
    refusal: str | None,
    remote: bool,
) -> None:
    device_seat.remote = remote
    candidate.process.mappings = lambda: b""
    monkeypatch.setattr(host_candidate, "places_of", lambda *_: places)
    device_seat.arena.fd = 0
    inputs = torch.zeros(2, 3), torch.zeros(2, 3)  # at 0 and at 2 * ALIGNMENT
    reply = CandidateReply(status=Status.DONE, output=described(device="cpu", address=address))
    device_seat.answer.expect(HOSTED)

    if refusal is None:
        device_seat.refuse_misplaced_output(inputs, reply)
        return
    with pytest.raises(VerdictError, match=refusal) as ruling:
        device_seat.refuse_misplaced_output(inputs, reply)
    assert ruling.value.verdict is Verdict.DISALLOWED


def test_without_a_tensor_on_the_host_no_mapping_is_read(
    device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.process.mappings = pytest.fail
    reply = CandidateReply(status=Status.DONE, output=described())
    device_seat.answer.expect(HOSTED)
    device_seat.refuse_misplaced_output((torch.zeros(0), 3), reply)


def hoarding(inputs: int = 0) -> None:
    raise VerdictError(Verdict.MEMORY_EXCEEDED, "only 1 MiB of the GPU's memory were left")


def test_who_leaves_the_judge_no_memory_is_told_so_after_its_call(
    play: Play, device_seat: DeviceCandidate
) -> None:
    device_seat.buffers.check_free_memory = hoarding  # type: ignore[method-assign]

    play(None, Operation.TOUCH)  # nobody hoards who is trusted
    with pytest.raises(VerdictError, match="only 1 MiB") as ruling:
        play(landed(POOL_AT))

    assert ruling.value.verdict is Verdict.MEMORY_EXCEEDED


def test_who_leaves_the_judge_no_memory_is_told_so_after_its_import(
    device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    asked: list[bytes] = []
    candidate.request = lambda order, _: asked.append(order)  # type: ignore[attr-defined]
    device_seat.build(Deadline.after(10))
    device_seat.buffers.check_free_memory = hoarding  # type: ignore[method-assign]

    with pytest.raises(VerdictError, match="only 1 MiB"):
        device_seat.build(Deadline.after(10))

    assert len(asked) == 2


def test_what_slows_the_gpu_is_asked_of_the_one_that_is_seen(
    device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = ("hardware power brake",)
    monkeypatch.setattr(
        device_candidate, "first_gpu", lambda: SimpleNamespace(slowed_by=lambda: told)
    )

    assert device_seat.slowed_by() == told


INTO_OUTPUT = LaunchNumbers(
    grid=(1, 1, 1), block=(1, 1, 1), arguments=(BufferArgument(kind="out", index=0),)
)
ROW = place(0, stride=(3, 1))


@pytest.fixture
def revealing(device_seat: DeviceCandidate) -> None:
    """The next input comes with what lies beside it."""
    buffers = device_seat.buffers

    def reveal() -> None:
        buffers.memory.bytes[:OUTPUT_AT].copy_(buffers.staging)

    buffers.reveal = reveal  # type: ignore[method-assign]


@pytest.mark.usefixtures("revealing")
@pytest.mark.parametrize("first", [None, SequenceNode(kind="tuple", items=()), landed(2)])
def test_device_code_has_written_into_its_room_whatever_is_told_of_it(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate, first: Node | None
) -> None:
    candidate.writes(OUTPUT_AT, VALUES)

    exchange = play(first, expected=ROW, launch=INTO_OUTPUT)
    device_seat.refuse_overruns()

    assert candidate.orders[-1].launch == INTO_OUTPUT
    assert candidate.poisoned == spread(OUTPUT_AT)
    assert torch.equal(fetched(device_seat, exchange), VALUES)  # type: ignore[arg-type]


@pytest.mark.usefixtures("revealing")
def test_device_code_that_writes_beside_its_output_is_refused(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    candidate.writes(OUTPUT_AT, torch.arange(8.0))

    play(None, expected=ROW, launch=INTO_OUTPUT)
    with pytest.raises(VerdictError, match="8 bytes near them changed") as ruling:
        device_seat.refuse_overruns()

    assert ruling.value.verdict is Verdict.WRONG_ANSWER
    assert "the first 0 bytes after the end of out0" in ruling.value.message


def test_other_submissions_have_no_guards(
    play: Play, device_seat: DeviceCandidate, candidate: Candidate
) -> None:
    play(None, expected=ROW, launch=INTO_OUTPUT)
    candidate.writes(POOL_AT, VALUES)
    candidate.writes(OUTPUT_AT, VALUES + 1)
    play(flat(landed(POOL_AT)))

    device_seat.refuse_overruns()


@pytest.mark.usefixtures("revealing")
@pytest.mark.parametrize("operation", [Operation.RUN, Operation.TOUCH])
def test_a_part_of_every_input_appears_only_when_the_cache_is_flushed(
    play: Play,
    device_seat: DeviceCandidate,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
) -> None:
    value = torch.arange(1024.0)
    size = 4 * len(value)
    shape: dict[str, object] = {"shape": (1024,), "stride": (1,)}
    plan = SimpleNamespace(host_size=0, device_size=size, node=place(0, **shape))
    monkeypatch.setattr(device_seat, "_plan", lambda _: plan)

    play(landed(POOL_AT), operation, value=value)

    wrong = candidate.early[:size].view(torch.float32) != value
    assert 0 < wrong.sum() <= size // 8 // 4
    assert len(set((wrong.nonzero().flatten() * 4 // LINE_BYTES).tolist())) > 1
    assert torch.equal(candidate.memory[:size].view(torch.float32), value)
    if operation is Operation.TOUCH:  # what is staged stays, with the same lines wrong
        first = candidate.early.clone()
        candidate.memory.fill_(OLD)
        play(landed(POOL_AT), operation, value=value)
        assert torch.equal(candidate.early, first)
        assert torch.equal(candidate.memory[:size].view(torch.float32), value)
        candidate.memory.fill_(OLD)
        play(landed(POOL_AT), Operation.RUN, value=value)
    assert torch.equal(device_seat.buffers.staging[:size].view(torch.float32), value)


def test_a_calibration_call_stages_its_input_again_only_if_another_one_was_staged_since(
    play: Play, device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[object] = []
    monkeypatch.setattr(device_seat, "stage", lambda _, value: staged.append(value))
    first, second = object(), object()
    plan = SimpleNamespace(host_size=0, device_size=0, node=ScalarNode(value=0))
    monkeypatch.setattr(device_seat, "_plan", lambda _: plan)

    def touch(value: object, expected: Node = EXPECTED, **options: bool) -> None:
        play(landed(POOL_AT), Operation.TOUCH, value=value, expected=expected, **options)

    for _ in range(2):
        touch(first)
    assert staged == [first]
    touch(second)
    touch(first)
    assert staged == [first, second, first]
    touch(first, expected=place(64))
    assert staged == [first, second, first, first]
    play(landed(POOL_AT), value=second)
    touch(first)
    assert staged[4:] == [second, first]
    assert [each.ahead for each in cast("Any", device_seat.handle).orders] == [
        True, True, True, True, True, True, True,
    ]  # fmt: skip


def test_a_calibration_call_that_waits_is_staged_again_as_those_of_a_submission(
    play: Play, device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[object] = []
    monkeypatch.setattr(device_seat, "stage", lambda _, value: staged.append(value))
    value = torch.ones(4, dtype=torch.float32)
    for waiting in (False, True, True, False):
        play(landed(POOL_AT), Operation.TOUCH, value=value, waiting=waiting)

    assert staged == [value] * 3


@pytest.mark.parametrize(
    ("options", "before"),
    [
        pytest.param({}, 0, id="ahead"),
        pytest.param({"waiting": True}, 1, id="one that waits for its input"),
        pytest.param({"launch": INTO_OUTPUT}, 1, id="device code, which needs guard bands"),
    ],
)
def test_an_input_is_staged_while_a_call_ahead_is_queued_and_before_any_other(
    play: Play,
    device_seat: DeviceCandidate,
    candidate: Candidate,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    before: int,
) -> None:
    def stage(*_: object) -> None:
        candidate.staged += 1

    monkeypatch.setattr(device_seat, "stage", stage)
    operation = Operation.TOUCH if "waiting" in options else Operation.RUN

    play(landed(POOL_AT), operation, expected=ROW, **options)

    assert (candidate.staged_before, candidate.staged) == ([before], 1)


def test_after_a_call_that_failed_the_calibration_input_is_staged_again(
    play: Play, device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged: list[object] = []
    monkeypatch.setattr(device_seat, "stage", lambda _, value: staged.append(value))

    def fails(_order: bytes, _deadline: Deadline, call: HandoverCall) -> Exchange:
        call.stage()
        raise ZeroDivisionError

    monkeypatch.setattr(device_seat.handle, "call_on_device", fails)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            play(None, Operation.TOUCH, value=5)

    assert staged == [5, 5]


def test_a_launch_that_does_not_fit_blames_the_task_before_the_window_opens(
    play: Play, candidate: Candidate
) -> None:
    with pytest.raises(VerdictError, match="needs a `ref_kernel`") as ruling:
        play(None, expected=None, launch=INTO_OUTPUT)

    assert ruling.value.verdict is Verdict.TASK_ERROR
    assert candidate.orders == []


def test_an_output_that_finds_no_room_blames_the_task(play: Play) -> None:
    with pytest.raises(VerdictError, match="more than twice its input plus 64 MiB") as ruling:
        play(None, expected=place(0, shape=(4000, 3), stride=(3, 1)), launch=INTO_OUTPUT)

    assert ruling.value.verdict is Verdict.TASK_ERROR


def keyed(**items: Node) -> DictNode:
    return DictNode(items=tuple(items.items()))


@pytest.mark.parametrize("ahead", [True, False])
def test_a_dict_may_be_filled_in_another_order_than_the_references(
    *, play: Play, device_seat: DeviceCandidate, candidate: Candidate, ahead: bool
) -> None:
    device_seat.ahead = ahead
    row = {"shape": (6,), "stride": (1,)}
    expected = keyed(b=flat(place(0)), a=place(64, **row))
    where = {"a": POOL_AT, "b": POOL_AT + 64} if ahead else {"a": OUTPUT_AT + 64, "b": OUTPUT_AT}
    candidate.writes(where["a"], VALUES.flatten() + 10)
    candidate.writes(where["b"], VALUES)
    told = keyed(a=landed(where["a"], **row), b=flat(landed(where["b"])))

    exchange = play(told if ahead else None, expected=expected, last=told)

    (order,) = candidate.orders
    assert [room.shape for room in order.rooms] == [
        (6,),
        (2, 3),
    ]  # by their keys, of which it knows
    found = device_seat.fetch(exchange.reply, expected, Deadline.after(10))
    assert list(found) == ["b", "a"]
    assert torch.equal(found["b"], VALUES)
    assert torch.equal(found["a"], VALUES.flatten() + 10)


@pytest.mark.parametrize("count", [1, 4])
def test_every_window_has_one_operation_that_poisons_again_wherever_the_outputs_lie(
    device_seat: DeviceCandidate, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    found = device_seat.answer
    expected = both(*(place(64 * each, shape=(16,), stride=(1,)) for each in range(count)))
    inside = both(*(landed(64 * each, shape=(16,), stride=(1,)) for each in range(count)))
    made: list[int] = []
    queue = PoisonedSectors.queue

    def counted(sectors: PoisonedSectors) -> None:
        made.append(len(sectors.numbers))
        queue(sectors)

    monkeypatch.setattr(PoisonedSectors, "queue", counted)
    found.expect(expected)
    for where in (found.room, found.places(inside)):
        found.expect_at(where)
        found.poison_again()
    assert made == [SECTORS] * 4
