"""The types of this task's input and output."""

from typing import TypedDict

import torch


class input_t(TypedDict):
    """`values`: int32, `size` elements from 0 to `bins - 1`; `bins`: how many there are."""

    values: torch.Tensor
    bins: int


output_t = torch.Tensor
"""The counts: int64, `bins` elements."""
