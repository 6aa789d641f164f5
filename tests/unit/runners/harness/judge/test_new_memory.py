"""What a task's generator does not write shows nothing of what the judge held there."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import torch

from runners.harness.judge import new_memory

SIZES = 1 << 10, 1 << 14, 1 << 18


@pytest.mark.parametrize(
    "make",
    [
        torch.empty,
        torch.FloatTensor,
        lambda size: torch.zeros(1).new_empty(size),
        lambda size: torch.zeros(1).new_empty_strided((size,), (1,)),
        lambda size: torch.empty_strided((size // 2, 2), (2, 1)),
        lambda size: torch.empty_permuted((2, size // 2), (1, 0)),
        lambda size: torch.empty_like(torch.zeros(size)),
        lambda size: torch.from_numpy(np.empty(size, np.float32)),
    ],
)
def test_uninitialized_numbers_are_large(make: Callable[[int], torch.Tensor]) -> None:
    for size in SIZES:
        freed = [torch.full((size,), 7.0) for _ in range(20)]
        del freed
        with new_memory.filled():
            assert make(size).abs().gt(1e30).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int64])
def test_large_numbers_of_each_type_have_both_signs_or_one(dtype: torch.dtype) -> None:
    with new_memory.filled():
        found = torch.empty(1001, dtype=dtype)

    assert found.abs().gt(30_000).all()


def test_half_of_uninitialized_truths_are_true() -> None:
    with new_memory.filled():
        found = torch.empty(1000, dtype=torch.bool)

    assert found[::2].all() != found[1::2].all()
    assert found.count_nonzero() == 500


def test_what_is_written_stays() -> None:
    with new_memory.filled():
        made = torch.zeros(100), torch.arange(5), torch.empty(3, 0), torch.empty(3, device="meta")
        sparse = torch.eye(3).to_sparse()

    assert not made[0].any()
    assert made[1].tolist() == [0, 1, 2, 3, 4]
    assert sparse.to_dense().equal(torch.eye(3))
    assert not torch.zeros(1 << 18).any()


def test_it_imports_no_compiler() -> None:
    program = """
import sys, torch
from runners.harness.judge import new_memory
with new_memory.filled():
    torch.empty(3)
raise SystemExit("torch._dynamo" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
