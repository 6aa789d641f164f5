"""What of the host's part of an input needs no GPU: what is seen when, and whose memory it is."""

import os
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from runners.harness.gpu.host_input import HostInput
from runners.harness.gpu.memory import HostBuffer
from runners.harness.protocol.arena import ALIGNMENT, Arena, lay_out, view
from runners.harness.protocol.values import TensorNode, tensors

VALUE = (torch.arange(2048.0), 5, torch.arange(1000).flip(0))


@pytest.fixture
def arena() -> Iterator[Arena]:
    with Arena(1 << 20) as made:
        yield made


@pytest.fixture
def host(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> HostInput:
    """One whose pinned memory is the arena itself, and whose GPU is this process."""
    zeros = torch.zeros
    monkeypatch.setattr(torch, "zeros", lambda size, dtype, device: zeros(size, dtype=dtype))

    def adopt(fd: int, size: int) -> SimpleNamespace:
        shown = torch.frombuffer(arena.buffer, dtype=torch.uint8, count=size)
        return SimpleNamespace(bytes=shown, close=lambda: os.close(fd))

    monkeypatch.setattr(HostBuffer, "adopt", adopt)
    return HostInput(arena)


def seen(arena: Arena, value: object) -> list[torch.Tensor]:
    node = lay_out(value).node
    return [view(arena.buffer, each) for each in tensors(node)]


def test_some_lines_of_each_tensor_are_visible_only_at_the_end(
    host: HostInput, arena: Arena
) -> None:
    host.stage(lay_out(VALUE).node, VALUE)
    assert not any(each.any() for each in seen(arena, VALUE))

    host.reveal()
    early = [each.clone() for each in seen(arena, VALUE)]
    host.complete()

    right = [VALUE[0], VALUE[2]]
    assert all(0 < (a != b).sum() < len(b) / 4 for a, b in zip(early, right, strict=True))
    assert all(map(torch.equal, seen(arena, VALUE), right))


def test_a_larger_input_finds_room_and_counts_as_the_judges_memory(
    host: HostInput, arena: Arena
) -> None:
    for value in (torch.ones(3), torch.ones(20_000)):
        host.stage(lay_out(value).node, value)
        host.reveal()
        host.complete()
        assert torch.equal(seen(arena, value)[0], value)

    assert arena.input_size == -(-80_000 // ALIGNMENT) * ALIGNMENT
    host.close()
    host.close()


def test_an_input_that_lies_on_the_gpu_leaves_the_host_as_it_was(
    host: HostInput, arena: Arena
) -> None:
    value = torch.ones(3)
    host.stage(lay_out(value).node, value)
    node = lay_out(value).node
    assert isinstance(node, TensorNode)

    host.stage(node.model_copy(update={"device": "cuda"}), value)
    host.reveal()
    host.complete()

    assert not seen(arena, value)[0].any()
