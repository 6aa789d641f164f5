"""What of the buffers needs no GPU: how large they are to be."""

import pytest
import torch

from runners.contract.verdict import Verdict
from runners.harness.gpu import buffers, memory
from runners.harness.gpu.buffers import (
    CONTEXT_BYTES,
    LINE_BYTES,
    POOL_SPARE,
    SPARE,
    Buffers,
    Withheld,
    aligned,
    device_bytes,
    max_parallel_candidates,
    max_spares,
    on_device,
    place_count,
    pool_size,
)
from runners.harness.gpu.memory import SEGMENT_BYTES, DriverError
from runners.harness.protocol.arena import Layout, Plan
from runners.harness.protocol.values import Node, ScalarNode, TensorNode, describe
from runners.harness.verdicts import VerdictError

MIB = 1 << 20


def laid_out(*sizes: int, device: str = "cuda") -> Node:
    """Outputs of so many bytes."""
    layout = Layout()
    value = [torch.empty(size, dtype=torch.uint8) for size in sizes]
    return describe(value, lambda tensor: layout.place(tensor, device))


def free(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Let a GPU have so much free memory."""
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (size, 1 << 40))


class Buffer:
    """Stands in for memory of the device, of which there is but little."""

    open = 0

    def __init__(self, size: int) -> None:
        self.size = size

    @classmethod
    def create(cls, size: int) -> "Buffer":
        if size > 100:
            raise DriverError("cuMemCreate", "out of memory")
        cls.open += 1
        return cls(size)

    def close(self) -> None:
        Buffer.open -= 1


@pytest.mark.parametrize(
    ("fixed", "pool", "places", "grain", "kept", "open_ones"),
    [
        (10, 20, 7, 5, 27, 2),
        (10, 0, 0, 5, 0, 2),
        (10, 200, 0, 5, 0, 0),
        (10, 20, 200, 5, 0, 0),
        (10, 20, 0, 200, 0, 0),
    ],
)
def test_where_not_all_device_memory_is_to_be_had_none_is_kept(
    monkeypatch: pytest.MonkeyPatch,
    fixed: int,
    pool: int,
    places: int,
    grain: int,
    kept: int,
    open_ones: int,
) -> None:
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(buffers, "DeviceBuffer", Buffer)
    monkeypatch.setattr(buffers, "SEGMENT_BYTES", grain)
    monkeypatch.setattr(memory.HostBuffer, "create", Buffer)
    monkeypatch.setattr(Buffer, "open", 0)

    made, room = buffers.share(fixed, pool, places)

    assert [each.size for each in made] == [fixed + kept, grain]
    assert room == (pool if kept else 0)  # pinned memory has no pool
    assert Buffer.open == open_ones


@pytest.mark.parametrize(
    ("size", "whole"),
    [(0, 0), (1, SEGMENT_BYTES), (SEGMENT_BYTES, SEGMENT_BYTES), (SEGMENT_BYTES + 1, 2)],
)
def test_a_size_is_rounded_up_to_whole_grains(size: int, whole: int) -> None:
    assert aligned(size) == whole * (1 if whole != 2 else SEGMENT_BYTES)


def test_a_structure_reaches_to_the_end_of_its_last_tensor_on_the_device() -> None:
    assert device_bytes(laid_out(5, 7)) == 2 * 4096 + 7
    assert device_bytes(laid_out(5, 7, device="cpu")) == device_bytes(ScalarNode(value=1)) == 0
    assert len(on_device(laid_out(5, 7))) == 2


def test_a_line_that_is_withheld_alone_holds_random_bytes() -> None:
    staging = torch.zeros(LINE_BYTES, dtype=torch.uint8)
    withheld, seen = Withheld(staging), list[bytes]()
    for _ in range(3):
        withheld.take([TensorNode(dtype="float32", shape=(32,), stride=(1,), offset=0)])
        seen.append(bytes(staging.tolist()))
        withheld.restore()

    assert len({*seen, bytes(LINE_BYTES), bytes([255]) * LINE_BYTES}) == 5
    assert not staging.any()


def test_a_pool_holds_four_outputs_and_what_torch_takes_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free(monkeypatch, 1 << 40)

    assert pool_size(100 * MIB, 0) == 400 * MIB + POOL_SPARE
    assert pool_size(1, 0) == POOL_SPARE + SEGMENT_BYTES
    assert pool_size(2 * MIB, 32) == 72 * MIB + POOL_SPARE


def test_a_pool_for_large_outputs_holds_fewer_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 8 << 30)

    assert pool_size(224 * MIB, 0) == 2 * 224 * MIB + POOL_SPARE
    assert pool_size(800 * MIB, 0) == 800 * MIB + POOL_SPARE
    assert pool_size(900 * MIB, 0) == 0


def test_where_room_is_scarce_there_is_no_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free(monkeypatch, 8 * POOL_SPARE)
    assert pool_size(1, 0) == 0
    free(monkeypatch, 16 * POOL_SPARE)
    assert pool_size(1, 0) > 0


def test_those_who_start_at_once_fill_half_of_the_free_memory_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room = Plan(ScalarNode(), 0, 300 * MIB)
    small = CONTEXT_BYTES + 300 * MIB + POOL_SPARE
    free(monkeypatch, 10 * small)
    large = laid_out(200 * MIB)

    assert max_parallel_candidates(room, None) == 5
    assert max_parallel_candidates(room, large) == 10 * small // 2 // (small + 5 * 200 * MIB)
    any_output = CONTEXT_BYTES + 300 * MIB + POOL_SPARE + 5 * (600 * MIB + SPARE)
    assert max_parallel_candidates(room, None, varies=True) == 10 * small // 2 // any_output
    free(monkeypatch, MIB)
    assert max_parallel_candidates(room, None) == 1


@pytest.mark.parametrize(("gib", "most"), [(140, 17), (23, 2), (7, 0)])
def test_before_there_is_a_request_contexts_take_an_eighth_of_the_memory(
    monkeypatch: pytest.MonkeyPatch, gib: int, most: int
) -> None:
    free(monkeypatch, gib << 30)
    assert max_spares() == most


POOL_AT = 10 * MIB


@pytest.mark.parametrize(
    ("free_before", "inputs", "least"),
    [
        (1 << 40, 0, SPARE + 8 * POOL_AT),
        (1 << 40, 32, SPARE + 8 * POOL_AT + 32 * 4 * MIB),
        (800 * MIB, 0, 100 * MIB),
    ],
    ids=["a large GPU", "before a train", "one with little memory left"],
)
def test_who_leaves_less_memory_than_the_judge_needs_is_refused(
    monkeypatch: pytest.MonkeyPatch, free_before: int, inputs: int, least: int
) -> None:
    made: Buffers = object.__new__(Buffers)
    made.pool_at, made.output_at, made.free_before = POOL_AT, 4 * MIB, free_before

    free(monkeypatch, least)
    made.check_free_memory(inputs)
    free(monkeypatch, least - 1)
    with pytest.raises(VerdictError, match=f"only {(least - 1) // MIB} MiB") as ruling:
        made.check_free_memory(inputs)

    assert ruling.value.verdict is Verdict.MEMORY_EXCEEDED


@pytest.mark.parametrize(
    ("input_bytes", "output_bytes", "tensors", "free_bytes", "count"),
    [
        (4 * MIB, 2 * MIB, 1, 80 << 30, 32),
        (26 * MIB, 13 * MIB, 1, 80 << 30, 16),
        (26 * MIB, 13 * MIB, 1, 40 << 30, 0),
        (60 * MIB, 13 * MIB, 1, 1 << 50, 0),
        (4 * MIB, MIB, 4, 80 << 30, 32),
        (4 * MIB, MIB, 5, 80 << 30, 0),
    ],
)
def test_a_candidate_has_as_many_places_as_fit_into_a_part_of_the_free_memory(
    monkeypatch: pytest.MonkeyPatch,
    input_bytes: int,
    output_bytes: int,
    tensors: int,
    free_bytes: int,
    count: int,
) -> None:
    free(monkeypatch, free_bytes)
    plan = Plan(laid_out(input_bytes), 0, input_bytes)
    assert place_count(plan, laid_out(*[output_bytes] * tensors), 8) == count


def test_there_are_no_places_for_what_lies_on_the_host_or_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free(monkeypatch, 80 << 30)
    plan = Plan(laid_out(MIB), 0, MIB)
    assert place_count(plan, laid_out(MIB), 8) == 32
    assert place_count(plan, None, 8) == 0
    assert place_count(plan, laid_out(MIB, device="cpu"), 8) == 0
    assert place_count(Plan(laid_out(MIB, device="cpu"), MIB, 0), laid_out(MIB), 8) == 0


@pytest.mark.parametrize(
    ("told", "output_size", "room"),
    [
        (None, 0, 2 * MIB + SPARE),
        (None, MIB, 2 * MIB + SPARE),
        (None, 2 * SPARE, 2 * SPARE),
        (laid_out(4 * MIB), 2 * SPARE, 4 * MIB),
    ],
)
@pytest.mark.parametrize("pooled", [True, False])
def test_outputs_of_any_structure_have_room_for_the_largest_that_is_known(
    *,
    monkeypatch: pytest.MonkeyPatch,
    told: Node | None,
    output_size: int,
    room: int,
    pooled: bool,
) -> None:
    class SharedError(Exception):
        pass

    def share(fixed: int, pool: int, _: int) -> None:
        assert fixed == MIB * 2 + room
        assert pool == (4 * room + POOL_SPARE if pooled else 0)
        raise SharedError

    free(monkeypatch, 1 << 40)
    monkeypatch.setattr(buffers, "share", share)
    with pytest.raises(SharedError):
        Buffers.create(Plan(ScalarNode(), 0, MIB, output_size), told, pooled=pooled)
