"""What of the guest needs no GPU: in which order a call goes, and where its output is delivered."""

import ctypes
import mmap
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument, LaunchScalar
from runners.harness.candidate import gpu_endpoint
from runners.harness.candidate.gpu_endpoint import (
    FILLED_APART,
    GpuEndpoint,
    KernelError,
    _combining,
    _words,
)
from runners.harness.gpu import memory
from runners.harness.gpu.device_code import ReadyLaunch
from runners.harness.gpu.handover import DONE, RELEASED
from runners.harness.gpu.memory import DriverError
from runners.harness.protocol import arena
from runners.harness.protocol.channel import (
    CandidateReply,
    CandidateRequest,
    DeviceFds,
    Operation,
    Status,
)
from runners.harness.protocol.values import ScalarNode, TensorNode

WORDS = 1 << 40
OUTPUT_AT, POOL_AT, SIZE = 1024, 2048, 8192
CLAIM_MS = 0.5


class OnGpu(torch.Tensor):
    """A tensor of the host that says it were on a GPU."""

    device = SimpleNamespace(type="cuda")  # type: ignore[assignment]


def on_gpu(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(OnGpu)


def room(offset: int, **changes: object) -> TensorNode:
    node = TensorNode(dtype="float32", shape=(2, 3), stride=(3, 1), offset=offset, device="cuda")
    return node.model_copy(update=changes)


ROOM = room(OUTPUT_AT)
VALUES = torch.arange(6.0).reshape(2, 3)


@pytest.fixture
def steps() -> list[object]:
    """What the call did, in order."""
    return []


@pytest.fixture
def guest(monkeypatch: pytest.MonkeyPatch, steps: list[object]) -> GpuEndpoint:
    """A guest on a GPU that is not there."""

    def stream(_: object) -> AbstractContextManager[None]:
        return nullcontext()

    def event(name: str) -> SimpleNamespace:
        return SimpleNamespace(record=lambda _: steps.append(name), elapsed_time=lambda _: CLAIM_MS)

    monkeypatch.setattr(torch.cuda, "stream", stream)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: steps.append("stands still"))
    monkeypatch.setattr(gpu_endpoint, "load_empty_module", lambda: steps.append("loads"))
    monkeypatch.setattr(memory, "await_word", lambda *args: steps.append(("await", *args)))
    monkeypatch.setattr(memory, "write_word", lambda *args: steps.append(("write", *args)))
    raw = torch.zeros(SIZE, dtype=torch.uint8)
    made: GpuEndpoint = object.__new__(GpuEndpoint)
    for name, value in {
        "host": mmap.mmap(-1, 4096),
        "memory": SimpleNamespace(address=raw.data_ptr(), bytes=raw),
        "words": SimpleNamespace(address=WORDS),
        "shared": DeviceFds(
            transport="vmm",
            size=SIZE,
            output_at=OUTPUT_AT,
            pool_at=POOL_AT,
            places_at=SIZE,
            words_size=4096,
        ),
        "local": raw,
        "remote": False,
        "turn": 0,
        "pool": None,
        "stream": SimpleNamespace(synchronize=lambda: steps.append("has its input")),
        "begin": event("begin"),
        "end": event("end"),
        "fills": {},
    }.items():
        setattr(made, name, value)
    return made


def lying(guest: GpuEndpoint, offset: int, shape: tuple[int, ...] = (2, 3)) -> torch.Tensor:
    """A tensor so far into the shared memory."""
    count = torch.Size(shape).numel()
    raw = guest.memory.bytes[offset : offset + 4 * count]
    return on_gpu(raw.view(torch.float32).view(shape))


def delivered(guest: GpuEndpoint, tensor: torch.Tensor, place: TensorNode | None) -> torch.Tensor:
    (found,) = all_delivered(guest, [tensor], () if place is None else (place,))
    return found


def all_delivered(
    guest: GpuEndpoint, tensors: list[torch.Tensor], places: tuple[TensorNode, ...]
) -> list[torch.Tensor]:
    order: Any = SimpleNamespace(ahead=True, rooms=places, lays_out=False)
    describe: Any = lambda output, placed: [placed(each) for each in output]  # noqa: E731
    found: Any = guest._deliver(tensors, order, describe)
    return list(found)


def called(
    guest: GpuEndpoint,
    steps: list[object],
    output: object,
    *,
    ahead: bool,
    rooms: tuple[TensorNode, ...],
) -> tuple[object, float]:
    def kernel(data: object) -> object:
        steps.append(("kernel", data))
        return output

    def described(output: object, placed: Callable[[torch.Tensor], torch.Tensor]) -> CandidateReply:
        found = [placed(each).data_ptr() for each in output]  # type: ignore[attr-defined]
        steps.append("described")
        return CandidateReply(status=Status.DONE, output=ScalarNode(value=str(found)))

    def tell(reply: CandidateReply) -> None:
        steps.append(("told", reply.output))

    value = ScalarNode(value=5)
    order = CandidateRequest(operation=Operation.RUN, value=value, rooms=rooms, ahead=ahead)
    return guest.call(kernel, order, described, tell)


def test_a_call_ahead_tells_where_its_output_will_lie_once_all_of_it_is_queued(
    guest: GpuEndpoint, steps: list[object]
) -> None:
    output = [lying(guest, POOL_AT), on_gpu(VALUES.clone())]
    rooms = (ROOM, room(OUTPUT_AT + 64))

    found = called(guest, steps, output, ahead=True, rooms=rooms)

    places = [guest.memory.address + offset for offset in (POOL_AT, OUTPUT_AT + 64)]
    assert steps == [
        "loads", ("await", WORDS + RELEASED, 1), "begin", ("kernel", 5), "described", "end",
        ("write", WORDS + DONE, 1), ("told", ScalarNode(value=str(places))), "stands still",
    ]  # fmt: skip
    assert found == (output, CLAIM_MS * 1e6)


def test_another_call_says_that_it_waits_and_has_all_of_its_output_copied(
    guest: GpuEndpoint, steps: list[object]
) -> None:
    kept = lying(guest, POOL_AT)
    kept.copy_(VALUES)

    called(guest, steps, [kept], ahead=False, rooms=(ROOM,))

    assert steps == [
        "loads", ("await", WORDS + RELEASED, 1), ("told", None), "has its input",
        "begin", ("kernel", 5), "described", "end",
        ("write", WORDS + DONE, 1), "stands still",
    ]  # fmt: skip
    assert torch.equal(lying(guest, OUTPUT_AT), VALUES)


def test_a_single_tensor_of_another_call_is_copied_before_anything_is_described(
    guest: GpuEndpoint, steps: list[object]
) -> None:
    kept = lying(guest, POOL_AT)
    kept.copy_(VALUES)

    called(guest, steps, kept, ahead=False, rooms=(ROOM,))

    assert "described" not in steps  # that takes processor time, which would count
    assert torch.equal(lying(guest, OUTPUT_AT), VALUES)


@pytest.mark.parametrize("ahead", [True, False])
def test_through_host_memory_the_input_is_fetched_before_the_events_and_the_copies_come_after(
    *, guest: GpuEndpoint, steps: list[object], ahead: bool
) -> None:
    guest.remote = True
    guest.local = torch.zeros(OUTPUT_AT, dtype=torch.uint8)
    guest.memory.bytes[:OUTPUT_AT] = 9

    called(guest, steps, [lying(guest, POOL_AT)], ahead=ahead, rooms=(ROOM,))

    own = [each for each in steps if each in ("begin", "end", "described")]
    assert own == ["begin", "end", "described"]
    assert guest.local.eq(9).all()


def test_every_call_is_a_turn_of_its_own(guest: GpuEndpoint, steps: list[object]) -> None:
    for turn in (1, 2):
        steps.clear()
        called(guest, steps, [], ahead=True, rooms=())
        assert (steps[1], ("write", WORDS + DONE, turn) in steps) == (
            ("await", WORDS + RELEASED, turn), True,
        )  # fmt: skip


def test_an_order_without_an_input_is_none(guest: GpuEndpoint) -> None:
    with pytest.raises(ValueError, match="without an input"):
        guest.call(lambda _: None, CandidateRequest(operation=Operation.RUN), None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("ahead", [True, False])
def test_without_rooms_an_output_is_laid_out_by_its_own_structure(
    *, guest: GpuEndpoint, steps: list[object], ahead: bool
) -> None:
    """As a judge lays out a right output, which is nowhere in the request."""
    raw = guest.memory.bytes = torch.zeros(1 << 16, dtype=torch.uint8)
    guest.memory.address = raw.data_ptr()
    guest.shared = guest.shared.model_copy(update={"size": 1 << 16, "pool_at": OUTPUT_AT + 20_000})
    other = torch.tensor([True, False])
    output = [on_gpu(VALUES.t()), VALUES, on_gpu(VALUES[:0]), on_gpu(other), on_gpu(VALUES)]
    laid = [each.offset or 0 for each in lay_out_on_gpu(output[0], output[2], output[3])]

    value = ScalarNode(value=5)
    order = CandidateRequest(operation=Operation.RUN, value=value, lays_out=True, ahead=ahead)
    seen: list[torch.Tensor] = []

    def described(output: Any, placed: Callable[[torch.Tensor], torch.Tensor]) -> CandidateReply:  # noqa: ANN401 - a list
        seen.extend(map(placed, output))
        return CandidateReply(status=Status.DONE)

    guest.call(lambda _: output, order, described, lambda _: None)

    first, host, _, truths, beyond = seen
    assert first.is_contiguous()
    assert torch.equal(first, VALUES.t())
    assert torch.equal(truths, other)
    found = [each.data_ptr() - raw.data_ptr() - OUTPUT_AT for each in (first, truths)]
    assert found == [laid[0], laid[2]]
    assert (host is VALUES, beyond is output[-1]) == (True, True)  # a wrong output has no place


def test_without_rooms_a_single_tensor_is_copied_before_anything_is_described(
    guest: GpuEndpoint, steps: list[object]
) -> None:
    output = on_gpu(VALUES[:, :1].clone())
    value = ScalarNode(value=5)
    order = CandidateRequest(operation=Operation.RUN, value=value, lays_out=True)
    guest.call(lambda _: output, order, lambda *_: pytest.fail("described"), lambda _: None)
    assert torch.equal(lying(guest, OUTPUT_AT, (2, 1)), VALUES[:, :1])


@pytest.mark.parametrize("ahead", [True, False])
def test_without_rooms_what_lies_in_shared_memory_is_captured_there_if_it_is_described_before(
    *, guest: GpuEndpoint, ahead: bool
) -> None:
    """As with rooms; else a kernel that finds its place would spare a copy that others make."""
    one, overlapping = lying(guest, POOL_AT), lying(guest, POOL_AT + 4)
    order: Any = SimpleNamespace(ahead=ahead, rooms=(), lays_out=True)
    describe: Any = lambda output, placed: [placed(each) for each in output]  # noqa: E731
    found = cast("Any", guest._deliver([one, overlapping], order, describe))

    copied = found[1] if ahead else found[0]
    assert (found[0] is one) is ahead
    assert copied.data_ptr() == guest.memory.address + OUTPUT_AT


def lay_out_on_gpu(*tensors: torch.Tensor) -> list[TensorNode]:
    """As the judge lays out these tensors."""
    layout = arena.Layout()
    return [layout.place(torch.empty(each.shape, dtype=each.dtype), "cuda") for each in tensors]


def test_there_may_be_more_tensors_than_rooms(guest: GpuEndpoint, steps: list[object]) -> None:
    given = [on_gpu(VALUES.clone()) for _ in range(2)]

    called(guest, steps, given, ahead=True, rooms=(ROOM,))

    places = [guest.memory.address + OUTPUT_AT, given[1].data_ptr()]
    assert ("told", ScalarNode(value=str(places))) in steps


@pytest.mark.parametrize("offset", [0, OUTPUT_AT, POOL_AT, SIZE - 32])
def test_what_lies_in_the_shared_memory_is_captured_there(guest: GpuEndpoint, offset: int) -> None:
    tensor = lying(guest, offset)

    assert delivered(guest, tensor, ROOM) is tensor


def test_an_output_that_overlaps_one_before_it_is_copied(guest: GpuEndpoint) -> None:
    other = ROOM.model_copy(update={"offset": (ROOM.offset or 0) + 64})
    one, apart = lying(guest, POOL_AT), lying(guest, POOL_AT + 32)

    assert all_delivered(guest, [one, apart], (ROOM, other)) == [one, apart]
    for second in (one, lying(guest, POOL_AT + 16)):
        first, copied = all_delivered(guest, [one, second], (ROOM, other))
        assert first is one
        assert copied.data_ptr() == guest.memory.address + (other.offset or 0)
        assert torch.equal(copied, second)


def strided(guest: GpuEndpoint) -> torch.Tensor:
    """In the shared memory, but with gaps: wider than its room."""
    return on_gpu(lying(guest, POOL_AT, (2, 6))[:, ::2])


def askew(guest: GpuEndpoint) -> torch.Tensor:
    guest.memory.address -= 2
    return lying(guest, POOL_AT)


def beyond(guest: GpuEndpoint) -> torch.Tensor:
    guest.shared = guest.shared.model_copy(update={"size": POOL_AT + 20})
    return lying(guest, POOL_AT)


def before(guest: GpuEndpoint) -> torch.Tensor:
    guest.memory.address += POOL_AT + 4
    return lying(guest, POOL_AT)


def remote(guest: GpuEndpoint) -> torch.Tensor:
    guest.remote = True
    return lying(guest, POOL_AT)


def negated(guest: GpuEndpoint) -> torch.Tensor:
    tensor = lying(guest, POOL_AT)
    return on_gpu(torch._neg_view(tensor))


@pytest.mark.parametrize("make", [strided, askew, beyond, before, remote, negated])
def test_what_the_judge_cannot_capture_where_it_lies_is_copied_into_its_room(
    guest: GpuEndpoint, make: Callable[[GpuEndpoint], torch.Tensor]
) -> None:
    tensor = make(guest)
    tensor.copy_(VALUES)

    found = delivered(guest, tensor, ROOM)

    assert found.data_ptr() == guest.memory.bytes.data_ptr() + OUTPUT_AT
    assert torch.equal(found, VALUES)
    assert found.stride() == ROOM.stride
    assert not found.is_neg()


def test_an_output_in_its_room_costs_no_memory(
    guest: GpuEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = lying(guest, OUTPUT_AT)
    monkeypatch.setattr(torch.Tensor, "clone", lambda _: pytest.fail("cloned"))

    assert guest._copied(there, ROOM).data_ptr() == there.data_ptr()


@pytest.mark.parametrize("offset", [OUTPUT_AT - 4, OUTPUT_AT + 4])
def test_an_output_across_its_room_is_copied_there(guest: GpuEndpoint, offset: int) -> None:
    across = lying(guest, offset)
    across.copy_(VALUES)

    found = guest._copied(across, ROOM)

    assert found.data_ptr() == guest.memory.bytes.data_ptr() + OUTPUT_AT
    assert torch.equal(found, VALUES)


def test_an_output_whose_elements_share_memory_is_copied_into_its_room(guest: GpuEndpoint) -> None:
    column = lying(guest, POOL_AT, (2, 1))
    column.copy_(VALUES[:, :1])

    found = delivered(guest, on_gpu(column.expand(2, 3)), ROOM)

    assert found.data_ptr() == guest.memory.bytes.data_ptr() + OUTPUT_AT
    assert torch.equal(found, VALUES[:, :1].expand(2, 3))


def test_an_output_with_gaps_between_repeated_elements_is_copied_into_its_room(
    guest: GpuEndpoint,
) -> None:
    ends = on_gpu(lying(guest, POOL_AT).as_strided((2, 3), (5, 0)))  # as many bytes as its room
    ends[:, 0] = VALUES[:, 0]

    found = delivered(guest, ends, ROOM)

    assert found.data_ptr() == guest.memory.bytes.data_ptr() + OUTPUT_AT
    assert torch.equal(found, VALUES[:, :1].expand(2, 3))


@pytest.mark.parametrize(
    ("tensor", "place"),
    [
        (on_gpu(torch.ones(3, 2)), ROOM),
        (on_gpu(torch.ones(2, 3).double()), ROOM),
        (torch.ones(2, 3), ROOM),
        (on_gpu(torch.ones(2, 3)), room(OUTPUT_AT, device="cpu")),
        (on_gpu(torch.ones(2, 3)), None),
    ],
    ids=["shape", "dtype", "host", "room on the host", "no room"],
)
def test_what_has_no_room_is_told_as_it_is_for_the_judge_to_refuse(
    guest: GpuEndpoint, tensor: torch.Tensor, place: TensorNode | None
) -> None:
    assert delivered(guest, tensor, place) is tensor
    assert guest._copied(tensor, place) is tensor
    assert guest.memory.bytes.count_nonzero() == 0


def test_a_sparse_tensor_is_not_copied_but_told_for_what_it_is(guest: GpuEndpoint) -> None:
    sparse: torch.Tensor = SimpleNamespace(  # type: ignore[assignment]
        shape=(2, 3), dtype=torch.float32, layout=torch.sparse_coo, device=OnGpu.device
    )

    assert delivered(guest, sparse, ROOM) is sparse


def test_the_stand_in_fills_as_many_bytes_as_the_output_and_gives_tensors_like_it(
    guest: GpuEndpoint,
) -> None:
    rooms = (ROOM, room(OUTPUT_AT + 64, stride=(6, 2)), room(0, device="cpu"))
    order = CandidateRequest(operation=Operation.TOUCH, value=room(0), rooms=rooms)

    fill = guest.calibration_kernel(order)
    guest.memory.bytes.zero_()
    given = fill(None)

    filled = guest.memory.bytes.nonzero().flatten().tolist()
    wanted = [OUTPUT_AT, OUTPUT_AT + 64]
    assert filled == [
        at + step for at, size in zip(wanted, (24, 44), strict=True) for step in range(size)
    ]
    assert [each.data_ptr() - guest.memory.address for each in given[:2]] == wanted
    assert [tuple(each.shape) for each in given] == [(2, 3)] * 3
    assert [each.stride() for each in given[:2]] == [(3, 1), (6, 2)]


def test_the_stand_in_writes_all_parts_of_an_output_of_many(guest: GpuEndpoint) -> None:
    rooms = tuple(room(OUTPUT_AT + 24 * number) for number in range(3 * FILLED_APART))
    order = CandidateRequest(operation=Operation.TOUCH, value=room(0), rooms=rooms)
    fill = guest.calibration_kernel(order)
    answer = guest.memory.bytes[OUTPUT_AT : OUTPUT_AT + 24 * len(rooms)]
    answer.fill_(7)

    fill(None)

    assert answer.tolist() == [1] * 24 * FILLED_APART + [0] * 24 * 2 * FILLED_APART


def test_the_stand_in_for_an_output_without_elements_starts_no_kernel(
    guest: GpuEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GpuEndpoint, "_make_fill", lambda *_: pytest.fail("a kernel"))
    monkeypatch.setattr(memory, "typed_view", lambda _, node: torch.zeros(node.shape))
    rooms = (room(OUTPUT_AT, shape=(0, 3), stride=(3, 1)),)
    order = CandidateRequest(operation=Operation.TOUCH, value=room(0), rooms=rooms)

    (given,) = guest.calibration_kernel(order)(None)

    assert given.shape == (0, 3)


def test_the_stand_in_is_made_once_for_each_output(guest: GpuEndpoint) -> None:
    def order(offset: int) -> CandidateRequest:
        return CandidateRequest(operation=Operation.TOUCH, value=room(0), rooms=(room(offset),))

    first = guest.calibration_kernel(order(OUTPUT_AT))

    assert guest.calibration_kernel(order(OUTPUT_AT)) is first
    assert guest.calibration_kernel(order(OUTPUT_AT + 64)) is not first


SIZES = {"grid": (4, 1, 1), "block": (32, 8, 1), "shared": 64}
LAUNCH = LaunchNumbers.model_validate(
    SIZES
    | {
        "arguments": (
            BufferArgument(kind="in", index=0),
            BufferArgument(kind="out", index=0),
            LaunchScalar(data="07000000"),
        )
    }
)


def launched(
    guest: GpuEndpoint, steps: list[object], kernel: Callable[[ReadyLaunch], object]
) -> list[ReadyLaunch]:
    given: list[ReadyLaunch] = []

    def called(launch: ReadyLaunch) -> object:
        given.append(launch)
        return kernel(launch)

    def described(output: object, placed: Callable[[torch.Tensor], torch.Tensor]) -> CandidateReply:
        steps.append([placed(each).data_ptr() for each in output])  # type: ignore[attr-defined]
        return CandidateReply(status=Status.DONE)

    order = CandidateRequest(
        operation=Operation.RUN, value=room(64), rooms=(ROOM,), ahead=True, launch=LAUNCH
    )
    guest.call(called, order, described, lambda _: None)
    return given


def addresses(launch: ReadyLaunch) -> list[bytes]:
    return [ctypes.string_at(pointer, len(data)) for pointer, data in zip(
        launch.pointers, launch.values, strict=True
    )]  # fmt: skip


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors that would lie on a GPU lie on the host."""
    empty = torch.empty
    monkeypatch.setattr(
        torch, "empty", lambda *size, device=None, **how: on_gpu(empty(*size, **how))
    )


def test_device_code_is_called_with_its_launch_on_the_input_and_into_the_rooms(
    guest: GpuEndpoint, steps: list[object]
) -> None:
    (launch,) = launched(guest, steps, lambda _: ())

    assert (launch.grid, launch.block, launch.shared) == tuple(SIZES.values())
    base = guest.memory.address
    assert addresses(launch) == [
        (base + 64).to_bytes(8, "little"), (base + OUTPUT_AT).to_bytes(8, "little"), b"\7\0\0\0",
    ]  # fmt: skip
    assert [] in steps  # nothing has to be copied


@pytest.mark.usefixtures("no_gpu")
def test_through_host_memory_device_code_writes_beside_the_rooms_and_is_copied(
    guest: GpuEndpoint, steps: list[object]
) -> None:
    guest.remote = True
    guest.local = torch.zeros(OUTPUT_AT, dtype=torch.uint8)

    def fill(launch: ReadyLaunch) -> object:
        launch.returned[0].copy_(VALUES)
        return launch.returned

    (launch,) = launched(guest, steps, fill)

    own, rooms = launch.returned[0].data_ptr(), [guest.memory.address + OUTPUT_AT]
    assert addresses(launch)[1] == own.to_bytes(8, "little")
    assert rooms in steps
    assert torch.equal(lying(guest, OUTPUT_AT), VALUES)


@pytest.mark.parametrize(
    ("error", "broken", "words"),
    [
        (DriverError("cuLaunchKernel", "CUDA_ERROR_X (too much)"), None, r"^CUDA_ERROR_X \(too"),
        (RuntimeError("CUDA error: long text"), "CUDA_ERROR_Y (bad)", r"^CUDA_ERROR_Y \(bad\)$"),
        (RuntimeError("no CUDA error"), None, "^no CUDA error$"),
    ],
)
def test_what_breaks_device_code_is_told_by_cudas_own_name(
    guest: GpuEndpoint,
    steps: list[object],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    broken: str | None,
    words: str,
) -> None:
    monkeypatch.setattr(memory, "broken_by", lambda: broken)

    def fail(_: ReadyLaunch) -> object:
        raise error

    with pytest.raises(KernelError, match=words):
        launched(guest, steps, fail)


def test_what_another_kernel_raises_is_its_own(guest: GpuEndpoint, steps: list[object]) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("mine")

    order = CandidateRequest(operation=Operation.RUN, value=ScalarNode(value=5), ahead=True)
    with pytest.raises(RuntimeError, match="mine"):
        guest.call(fail, order, None, None)  # type: ignore[arg-type]


def test_every_call_of_a_train_is_queued_behind_its_own_input(
    guest: GpuEndpoint, steps: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "timed_event", lambda: guest.begin)
    outputs = [lying(guest, POOL_AT), lying(guest, POOL_AT + 64)]

    def kernel(data: object) -> object:
        steps.append(("kernel", data))
        return outputs[int(str(data))]

    def described(output: object, placed: Callable[[torch.Tensor], torch.Tensor]) -> CandidateReply:
        return CandidateReply(
            status=Status.DONE,
            output=ScalarNode(value=placed(output).data_ptr()),  # type: ignore[arg-type]
        )

    orders = [
        CandidateRequest(
            operation=Operation.RUN, value=ScalarNode(value=number), rooms=(ROOM,), ahead=True
        )
        for number in range(2)
    ]
    told: list[CandidateReply] = []
    for stamped in (False, True):
        steps.clear()
        found = guest.run_train([kernel] * 2, orders, described, told.append, stamped=stamped)
        stamp = ["begin"] * stamped
        first = guest.turn - 1
        assert steps == [
            "loads", ("await", WORDS + RELEASED, first), *stamp, ("kernel", 0), *stamp,
            ("await", WORDS + RELEASED, first + 1), *stamp, ("kernel", 1), *stamp,
            "stands still",
        ]  # fmt: skip
        assert found == (outputs, (CLAIM_MS * 1e6,) * 2 if stamped else ())
    places = [each.data_ptr() for each in outputs]
    assert [[each.value for each in reply.outputs or ()] for reply in told] == [places] * 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        (3, 3, [-1, -2, -3]),
        (2, 5, [-1, -2, -1, -2, 9]),
        (6, 3, [0 ^ 3, 1 ^ 4, 2 ^ 5]),
        (8, 3, [4, 5, 6]),
        (4, 1, [3]),
        (0, 3, None),
        (3, 0, None),
    ],
)
def test_the_standin_reads_and_writes_in_one_kernel(
    source: int, target: int, found: list[int] | None
) -> None:
    read = torch.arange(source, dtype=torch.int32)
    written = torch.full((target,), 9, dtype=torch.int32)
    combine = _combining(read, written)
    if combine is not None:
        combine()
    assert (combine and written.tolist()) == found


def test_bytes_are_numbers_of_four_without_the_last_incomplete_one() -> None:
    assert _words(torch.zeros(11, dtype=torch.uint8)).shape == (2,)


def test_an_output_at_an_odd_address_is_copied_because_the_judges_copy_would_be_slow(
    guest: GpuEndpoint,
) -> None:
    place = room(OUTPUT_AT + 512)
    for offset, at in ((16, 16), (4, None), (64, 64)):
        found = delivered(guest, lying(guest, POOL_AT + offset), place)
        expected = OUTPUT_AT + 512 if at is None else POOL_AT + at
        assert found.data_ptr() == guest.memory.address + expected
