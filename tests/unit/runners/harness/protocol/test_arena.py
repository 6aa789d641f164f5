import fcntl
import mmap
import os
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runners.harness.protocol.arena import (
    ALIGNMENT,
    PREPARED_TENSORS,
    Arena,
    Plan,
    SeparateSpans,
    apart,
    compact_description,
    covering,
    lay_out,
    prepared_reader,
    reach,
    view,
)
from runners.harness.protocol.values import (
    DTYPES,
    ScalarNode,
    TensorNode,
    UndescribableError,
    bits,
    leaves,
    restore,
    tensors,
)

ROOM = 1 << 22


def round_trip(value: object) -> object:
    plan = lay_out(value)
    with Arena(ROOM) as arena:
        arena.write(plan.node, value)
        return restore(plan.node, lambda node: view(arena.buffer, node).clone())


def same(left: object, right: object) -> bool:
    pairs = zip(leaves(left), leaves(right), strict=True)
    return all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(5.0),
        torch.tensor([float("nan"), float("inf"), -0.0]),
        torch.tensor([True, False]),
        torch.arange(4).to(torch.bfloat16),
        torch.zeros(0, 3),
        {"a": [torch.arange(3), (torch.ones(2, 2), 7)], "b": "text"},
    ],
    ids=["float", "nan", "bool", "bf16", "empty", "nested"],
)
def test_a_value_comes_out_as_it_went_in(value: object) -> None:
    assert same(round_trip(value), value)


def test_a_tensor_of_too_many_dimensions_is_told() -> None:
    with pytest.raises(UndescribableError, match="a tensor of 17 dimensions"):
        lay_out([torch.zeros([1] * 17)])


@pytest.mark.parametrize("prepared", [0, 1, 3])
def test_a_value_is_restored_in_each_call(monkeypatch: pytest.MonkeyPatch, prepared: int) -> None:
    monkeypatch.setattr(f"{Arena.__module__}.PREPARED", prepared)
    value = {"a": [torch.arange(3), (torch.ones(2, 2), 7)], "b": 0.5, "c": torch.zeros(0, 3)}
    plan = lay_out(value)
    with Arena(ROOM) as shared:
        again = prepared_reader(shared.buffer, plan.node)
        shared.write(plan.node, value)
        first, second, third = again(), again(), again()

        assert all(same(each, value) for each in (first, second, third))
        first["a"].clear()
        second["a"][0][1] = 9  # in the memory that they share
        second["a"][0].resize_(2)

    assert third["a"][0].tolist() == [0, 9, 2]
    assert (third["a"][1][1], third["b"]) == (7, 0.5)


def test_only_so_many_tensors_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(f"{Arena.__module__}.reader", lambda *_: lambda: made.append(1))
    prepared_reader(cast("Any", None), lay_out([torch.ones(1)] * 1000).node)
    assert len(made) == PREPARED_TENSORS // 1000


def test_a_tensor_with_repeated_elements_keeps_them() -> None:
    value = torch.arange(3.0)[:, None].expand(-1, 2)

    assert torch.equal(torch.as_tensor(round_trip(value)), value)


def test_a_strided_tensor_keeps_its_strides() -> None:
    value = torch.arange(12.0).reshape(3, 4).T

    found = round_trip(value)

    assert isinstance(found, torch.Tensor)
    assert torch.equal(found, value)
    assert lay_out(value).node.stride == (1, 4)  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 5000), max_size=6))
def test_no_tensor_shares_a_page_with_another(sizes: list[int]) -> None:
    plan = lay_out([torch.empty(size, dtype=torch.uint8) for size in sizes])
    begins = [node.offset or 0 for node in tensors(plan.node)]
    ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]

    assert begins[:1] in ([], [0])
    assert all(begin % ALIGNMENT == 0 for begin in begins)
    assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
    assert plan.host_size >= max(ends, default=0)
    assert plan.device_size == 0


def test_a_tensor_reaches_to_its_last_element() -> None:
    assert reach(torch.empty(4, 6)[:, ::3]) == 88
    assert reach(torch.empty(0, 6)) == 0


def test_the_size_of_an_arena_cannot_be_changed() -> None:
    with Arena(ROOM) as arena:
        for size in (0, 2 * ROOM):
            with pytest.raises(PermissionError):
                os.ftruncate(arena.fd, size)


def test_an_arena_takes_no_memory_before_it_is_written() -> None:
    with Arena(1 << 30) as arena:
        assert os.fstat(arena.fd).st_blocks == 0


def test_what_somebody_else_has_an_arena_hold_is_a_hoard() -> None:
    value = torch.arange(100_000.0)
    with Arena(8 << 20) as arena:
        arena.write(lay_out(value).node, value)
        assert arena.excess_bytes == 0

        os.posix_fallocate(arena.fd, 4 << 20, 1 << 20)
        with mmap.mmap(arena.fd, 1 << 20, offset=6 << 20) as other:
            other.write(bytes(1 << 20))

        assert arena.excess_bytes == 2 << 20


def test_what_somebody_else_has_an_arena_hold_can_be_freed() -> None:
    """Killing a candidate frees no page that the judge has mapped too."""
    with Arena(8 << 20) as arena:
        arena.write(lay_out(value := torch.arange(1000.0)).node, value)
        arena.buffer[1 << 20 : 5 << 20] = b"x" * (4 << 20)
        assert arena.excess_bytes == 4 << 20
        arena.free_excess()
        assert arena.excess_bytes == 0
        assert torch.equal(view(arena.buffer, lay_out(value).node), value)  # type: ignore[arg-type]


def test_nobody_may_seal_an_arena_further() -> None:
    with Arena(ROOM) as arena, pytest.raises(PermissionError):
        fcntl.fcntl(arena.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_type_comes_out_byte_for_byte_at_its_strides(dtype: torch.dtype) -> None:
    turned = (torch.arange(24 * dtype.itemsize, dtype=torch.uint8) % 2).view(dtype).view(4, 6).T
    node = lay_out(turned).node
    assert isinstance(node, TensorNode)

    with Arena(ROOM) as arena:
        arena.write(node, turned)
        found = view(arena.buffer, node)

    assert (found.dtype, found.stride()) == (dtype, turned.stride())
    assert torch.equal(bits(found), bits(turned))
    (room,) = tensors(compact_description(turned))
    assert (room.stride, room.dtype, room.device) == ((4, 1), node.dtype, "cpu")


def test_the_room_for_a_value_has_no_gaps_and_no_element_twice() -> None:
    value = (torch.zeros(4, 1).expand(4, 8), torch.zeros(4, 8)[:, ::2].T)

    room = tensors(compact_description(value))

    assert [(each.shape, each.stride) for each in room] == [((4, 8), (8, 1)), ((4, 4), (4, 1))]
    assert room[1].offset == 2 * ALIGNMENT


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24.0).reshape(3, 8),
        torch.arange(24.0).reshape(3, 8).T,
        torch.arange(24.0).reshape(3, 8)[:, :4],
        torch.arange(1.0, 25).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
        torch.empty(0, 4).expand(2, 0, 4),
        torch.tensor(3.0),
        torch.arange(5.0).expand(1, 5),
    ],
)
def test_elements_that_are_apart_and_near_stay_where_they_are(tensor: torch.Tensor) -> None:
    assert apart(tensor) is tensor


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24.0).reshape(3, 8)[:, :2],
        torch.arange(24.0)[::4],
        torch.arange(24.0)[::8].reshape(3, 1),
        torch.arange(5.0).expand(4, 5),
        torch.arange(5.0).unfold(0, 2, 1),
        torch.arange(4.0).as_strided((2, 2), (1, 1)),
        torch.ones(1).to(torch.float8_e5m2).expand(3),
    ],
)
def test_elements_that_share_memory_or_are_far_apart_are_copied(tensor: torch.Tensor) -> None:
    found = apart(tensor)

    assert found.tolist() == tensor.tolist()
    assert not found.is_contiguous()
    assert found.untyped_storage().nbytes() <= 2 * tensor.numel() * tensor.itemsize
    for number, element in enumerate(bits(found).reshape(-1)):
        assert element.item() == bits(tensor).reshape(-1)[number].item()
    bits(found).zero_()
    bits(found)[(0,) * found.dim()] = 1
    assert bits(found).count_nonzero() == 1


def test_spans_that_overlap_another_are_not_added() -> None:
    spans = SeparateSpans()
    assert [spans.add(*each) for each in ((100, 50), (0, 100), (150, 1), (40, 0))] == [True] * 4
    for overlapping in ((100, 50), (149, 1), (99, 2), (0, 400), (110, 5), (150, 9)):
        assert not spans.add(*overlapping)
    assert spans.add(151, 9)


def test_a_layout_covers_the_largest_input_and_the_largest_output() -> None:
    plans = [Plan(ScalarNode(value=each), each, 5 * each, 10 - each) for each in (1, 2)]
    assert covering(plans) == Plan(ScalarNode(value=2), 2, 10, 9)
    assert covering([]) == Plan(ScalarNode(), 0, 0)
