"""The types of this task's input and output."""

import torch

input_t = torch.Tensor
"""A float32 matrix of `rows` x `cols` elements."""
output_t = torch.Tensor
"""A new float32 matrix of the same shape."""
