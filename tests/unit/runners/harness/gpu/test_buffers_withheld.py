"""What a candidate sees last of an input: some lines of every tensor, at places nobody foresees."""

import pytest
import torch

from runners.harness.gpu.buffers import LINE_BYTES, LINES_PER_WITHHELD, MAX_LINES, Withheld
from runners.harness.protocol.values import DTYPES, TensorNode

SIZE = 1 << 20


def tensor_at(offset: int, size: int) -> TensorNode:
    return TensorNode(dtype="uint8", shape=(size,), stride=(1,), offset=offset, device="cuda")


def numbered(size: int = SIZE) -> torch.Tensor:
    """Bytes of which no two lines are alike."""
    return torch.arange(size // 8, dtype=torch.int64).view(torch.uint8)


def lines(wrong: torch.Tensor) -> set[int]:
    return set((wrong.nonzero().flatten() // LINE_BYTES).tolist())


@pytest.mark.parametrize(
    ("sizes", "most"),
    [
        ([(0, 16 * LINE_BYTES)], [2]),
        ([(4096, SIZE - 4096)], [MAX_LINES]),
        ([(0, 64 * LINE_BYTES), (65_536, 8 * LINE_BYTES)], [8, 1]),
        ([(0, 1), (4096, 4096)], [1, 4]),
        ([(4096 * each, 4096) for each in range(200)], [2] * 200),
    ],
    ids=["small", "large", "two", "a byte and a page", "many"],
)
def test_every_tensor_lacks_some_lines_until_the_end_and_has_them_then(
    sizes: list[tuple[int, int]], most: list[int]
) -> None:
    staging, memory = numbered(), torch.zeros(SIZE, dtype=torch.uint8)
    withheld = Withheld(staging)

    withheld.take([tensor_at(*each) for each in sizes])
    memory.copy_(staging)

    early = lines(memory != numbered())
    for (offset, size), count in zip(sizes, most, strict=True):
        of_it = early & set(range(offset // LINE_BYTES, (offset + size - 1) // LINE_BYTES + 1))
        assert 1 <= len(of_it) <= count
        early -= of_it
    assert not early  # nothing lies wrong beside them
    withheld.reveal(memory)
    assert torch.equal(memory, numbered())
    withheld.restore()
    assert torch.equal(staging, numbered())


def test_the_lines_change_from_call_to_call_and_from_run_to_run() -> None:
    found = []
    for _ in range(2):
        withheld = Withheld(numbered())
        for _ in range(2):
            withheld.take([tensor_at(0, SIZE)])
            found.append(set(withheld.indices.tolist()))
            withheld.restore()

    assert all(found[a] != found[b] for a in range(4) for b in range(a))


TYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "complex64",
    "int64",
    "int16",
    "uint8",
    "bool",
)


@pytest.mark.parametrize("name", TYPES)
def test_what_lies_there_meanwhile_looks_like_the_rest_and_has_another_sum(name: str) -> None:
    right = (torch.rand(4096, generator=torch.Generator().manual_seed(5)) * 100).to(DTYPES[name])
    staging = right.view(torch.uint8).clone()
    node = TensorNode(dtype=name, shape=(4096,), stride=(1,), offset=0, device="cuda")

    withheld = Withheld(staging)
    withheld.random.manual_seed(5)  # one sum in some thousands stays the same
    torch.manual_seed(5)

    withheld.take([node])

    early = plain(staging.view(DTYPES[name]))
    assert early.abs().max() < (2 if name == "bool" else 2**41)  # which nan is not
    assert early.sum() != plain(right).sum()
    assert not torch.equal(early.sort().values, plain(right).sort().values)


def plain(numbers: torch.Tensor) -> torch.Tensor:
    """Real numbers that can be added up."""
    parts = torch.view_as_real(numbers) if numbers.is_complex() else numbers
    bytes_of = parts.view(torch.uint8) if parts.dtype is torch.bool else parts
    return bytes_of.double().flatten()


def test_an_only_line_is_not_there_at_all() -> None:
    withheld = Withheld(staging := numbered())

    withheld.take([tensor_at(0, LINE_BYTES // LINES_PER_WITHHELD)])

    numbers, right = (each[:LINE_BYTES].view(torch.int64) for each in (staging, numbered()))
    assert not (numbers == right).any()  # single bytes may be equal by chance


def test_where_nothing_lies_on_the_device_nothing_is_withheld() -> None:
    withheld = Withheld(staging := numbered())

    withheld.take([])

    assert torch.equal(staging, numbered())
    withheld.reveal(memory := numbered())
    assert torch.equal(memory, numbered())


def test_the_lines_of_a_call_do_not_follow_from_those_before() -> None:
    """Those of one call show a seed of 32 bits, which torch's generator takes no more of."""
    found = []
    for _ in range(2):
        withheld = Withheld(staging := numbered())
        withheld.random.manual_seed(1)
        withheld.take([tensor_at(0, SIZE)])
        found.append(lines(staging != numbered()))
    assert found[0] != found[1]
