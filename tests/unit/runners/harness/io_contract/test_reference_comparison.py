import math
import re

import pytest
import torch

from runners.harness.io_contract.reference import contains_nan, mismatch
from runners.harness.sandbox.syscalls import memory_limited

ONE = torch.ones(2, 3)


def compared(right: torch.Tensor, given: torch.Tensor, tolerance: float = 1e-2) -> str | None:
    return mismatch([right], [given], tolerance, tolerance)


def test_outputs_within_the_tolerance_are_equal() -> None:
    assert compared(ONE, ONE + 0.019) is None
    assert compared(ONE.bfloat16(), ONE.bfloat16()) is None
    assert compared(ONE.bool(), ONE.bool()) is None
    assert compared(ONE.int(), ONE.int()) is None
    assert compared(ONE / 0, ONE / 0) is None


def test_the_largest_and_the_mean_difference_are_told() -> None:
    off = ONE.clone()
    off[1, 2] = 4.0
    assert compared(ONE, off) == (
        "1 of 6 elements differ; the first at [1, 2]: got 4.0, expected 1.0. "
        "Max difference: 3. Avg difference: 0.5. Tolerance: atol=0.01, rtol=0.01."
    )


@pytest.mark.parametrize(
    ("right", "given", "words"),
    [
        (ONE, ONE[:1], r"Shape mismatch: ref=\[2, 3\], custom=\[1, 3\]"),
        (ONE, ONE.double(), "Dtype mismatch: ref=float32, custom=float64"),
        (ONE, ONE * math.nan, "6 of 6"),
        (ONE * math.nan, ONE * math.nan, "6 of 6"),
        (ONE.bool(), ~ONE.bool(), r"at \[0, 0\]: got False, expected True"),
        (torch.tensor(1.0), torch.tensor(math.nan), r"1 of 1 .* at \[\]: got nan, expected 1.0"),
        (ONE.int(), ONE.int() + 2, "Max difference: 2"),
        (ONE.half(), ONE.half() + 1, "Max difference: 1"),
        (ONE.to(torch.complex64), ONE.to(torch.complex64) * 1j, "6 of 6"),
    ],
)
def test_differences_are_told(right: torch.Tensor, given: torch.Tensor, words: str) -> None:
    found = compared(right, given)
    assert found is not None
    assert re.search(words, found)


def test_describing_a_difference_takes_no_more_memory_than_a_comparison() -> None:
    right = torch.zeros(1 << 10, 1, 1, 1 << 13)
    wrong = right + 1
    with memory_limited(7 * right.nbytes):
        assert compared(right, right) is None
        assert "Avg difference: 1." in (compared(right, wrong) or "")


def test_outputs_are_counted_and_named_by_their_place() -> None:
    assert mismatch([ONE], [ONE, ONE], 0, 0) == "Output count mismatch: ref=1, custom=2"
    found = mismatch([ONE, ONE], [ONE, ONE * 2], 0, 0)
    assert found is not None
    assert found.startswith("output 1: 6 of 6")


def test_only_floats_can_be_undefined() -> None:
    assert contains_nan([ONE.int(), ONE.bfloat16() * math.nan])
    assert not contains_nan([ONE, ONE.int(), ONE.bool()])


def test_doubles_are_compared_as_doubles() -> None:
    right = ONE.double()
    assert mismatch([right], [right + 1e-9], 0, 1e-12) is not None
    assert mismatch([right], [right + 1e-9], 0, 1e-8) is None


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint32, torch.uint64])
def test_integers_are_not_compared_as_floats(dtype: torch.dtype) -> None:
    right = torch.tensor([1_000_000_000, 100], dtype=dtype)
    for off, tolerances, wrong in [
        ([31, 0], (1e-5, 0), True),
        ([31, 0], (30.0, 0), True),
        ([31, 0], (31.0, 0), False),
        ([10_000_000, 1], (0, 1e-2), False),
        ([10_000_001, 0], (0, 1e-2), True),
        ([0, 1], (0.5, 0), True),
        ([0, 0], (0, 0), False),
    ]:
        given = torch.tensor([1_000_000_000 + off[0], 100 + off[1]], dtype=dtype)
        assert bool(mismatch([right], [given], *tolerances)) is wrong, (off, tolerances)


def test_integers_without_an_exact_double_must_be_equal_below_a_tolerance_of_one() -> None:
    right = torch.tensor([(1 << 60) + 1])
    assert mismatch([right], [right - 1], 1e-5, 0)
    assert mismatch([right], [right], 0, 0) is None


def test_numbers_of_four_bits_are_compared_by_their_values() -> None:
    bytes_of = torch.tensor([[0x21, 0x07, 0x80]], dtype=torch.uint8)
    right = bytes_of.view(torch.float4_e2m1fn_x2)
    wrong = (bytes_of ^ torch.tensor([0, 0x20, 0], dtype=torch.uint8)).view(right.dtype)
    minus_zero = (bytes_of ^ torch.tensor([0, 0, 8], dtype=torch.uint8)).view(right.dtype)

    assert not contains_nan([right])
    assert compared(right, right) is None
    assert compared(right, minus_zero) is None
    assert compared(right.t(), wrong.t()) == (
        "1 of 6 elements differ; the first at [1, 0, 1]: got 1.0, expected 0.0. "
        "Max difference: 1. Avg difference: 0.166667. Tolerance: atol=0.01, rtol=0.01."
    )
