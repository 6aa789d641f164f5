"""Guard bands: where they lie, and what is said of a byte of them that changed."""

import pytest
import torch

from runners.contract.verdict import Verdict
from runners.harness.judge import launches
from runners.harness.judge.launches import GUARD, Band, GuardedRange, Guards, bands, ranges_of
from runners.harness.protocol.values import TensorNode
from runners.harness.verdicts import VerdictError

IN, OUT = GuardedRange("in0", 0, 100), GuardedRange("out0", 4096, 4196)
SIZE, OUTPUT_AT = 8192, 4096


def zeros(size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.uint8)


@pytest.fixture
def laid() -> tuple[Guards, torch.Tensor]:
    """Memory with the bands of one input and one output, as a call finds it."""
    made = Guards(bands((IN, OUT), SIZE), OUTPUT_AT)
    staging, memory = (
        torch.zeros(OUTPUT_AT, dtype=torch.uint8),
        torch.zeros(SIZE, dtype=torch.uint8),
    )
    made.write(staging, memory)
    memory[:OUTPUT_AT] = staging  # revealed
    return made, memory


def node(offset: int, size: int, **changes: object) -> TensorNode:
    made = TensorNode(dtype="uint8", shape=(size,), stride=(1,), offset=offset, device="cuda")
    return made.model_copy(update=changes)


def test_tensors_on_the_device_are_called_as_a_launch_calls_them() -> None:
    nodes = [node(0, 5), node(4096, 0), node(0, 7, device="cpu"), node(8192, 9)]
    assert list(ranges_of("in", nodes)) == [
        GuardedRange("in0", 0, 5),
        GuardedRange("in3", 8192, 8201),
    ]


def test_all_bytes_between_near_tensors_are_watched() -> None:
    assert bands((OUT, IN), SIZE) == (
        Band(100, 4096, IN, OUT), Band(4196, SIZE, OUT, None),
    )  # fmt: skip


def test_far_from_every_tensor_nothing_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "BAND", 10)
    assert bands((GuardedRange("in0", 500, 600), OUT), SIZE) == (
        Band(490, 500, None, GuardedRange("in0", 500, 600)),
        Band(600, 610, GuardedRange("in0", 500, 600), None),
        Band(4086, 4096, None, OUT),
        Band(4196, 4206, OUT, None),
    )


def test_tensors_side_by_side_have_no_band_between_them() -> None:
    assert bands((GuardedRange("in0", 0, 10), GuardedRange("in1", 10, 20)), 20) == ()


def test_only_the_bands_are_filled(laid: tuple[Guards, torch.Tensor]) -> None:
    _, memory = laid
    empty = (memory != GUARD).nonzero().flatten().tolist()
    assert empty == [*range(100), *range(4096, 4196)]


def test_a_band_may_lie_on_both_sides_of_the_first_output(
    laid: tuple[Guards, torch.Tensor],
) -> None:
    made = Guards(bands((IN,), SIZE), OUTPUT_AT)
    staging, memory = (
        torch.zeros(OUTPUT_AT, dtype=torch.uint8),
        torch.zeros(SIZE, dtype=torch.uint8),
    )
    made.write(staging, memory)
    assert (int(staging.count_nonzero()), int(memory.count_nonzero())) == (3996, 4096)


def test_whole_bands_are_well(laid: tuple[Guards, torch.Tensor]) -> None:
    made, memory = laid
    memory[:100] = 3
    memory[4096:4196] = 4
    before = memory.clone()
    made.refuse_changed(memory)
    Guards((), OUTPUT_AT).refuse_changed(memory)
    assert torch.equal(memory, before)


@pytest.mark.parametrize(
    ("begin", "end", "words"),
    [
        (4196, 4200, "4 bytes near them changed, the first 0 bytes after the end of out0"),
        (4200, 4201, "1 bytes near them changed, the first 4 bytes after the end of out0"),
        (4095, 4096, "1 bytes near them changed, the first 1 bytes before out0"),
        (100, 104, "4 bytes near them changed, the first 0 bytes after the end of in0"),
        (SIZE - 1, SIZE, "1 bytes near them changed, the first 3995 bytes after the end of out0"),
    ],
)
def test_a_changed_byte_is_told_from_the_nearer_tensor(
    laid: tuple[Guards, torch.Tensor], begin: int, end: int, words: str
) -> None:
    made, memory = laid
    memory[begin:end] = 0
    with pytest.raises(VerdictError) as ruling:
        made.refuse_changed(memory)
    assert ruling.value.verdict is Verdict.WRONG_ANSWER
    assert words in ruling.value.message


def test_changes_in_several_bands_are_counted_together(laid: tuple[Guards, torch.Tensor]) -> None:
    made, memory = laid
    memory[4090:4200] = 0
    with pytest.raises(
        VerdictError, match="10 bytes near them changed, the first 6 bytes before out0"
    ):
        made.refuse_changed(memory)
