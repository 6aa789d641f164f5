"""The types of this task's input and output."""

import torch

input_t = tuple[torch.Tensor, torch.Tensor]
"""`(a, b)`: float16 matrices of `m` x `k` and `k` x `n` elements."""
output_t = torch.Tensor
"""A new float16 matrix of `m` x `n` elements."""
