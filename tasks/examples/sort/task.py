"""The types of this task's input and output."""

import torch

input_t = torch.Tensor
"""A float32 vector of `size` elements, which may be written to."""
output_t = torch.Tensor
"""The same numbers in ascending order: the sorted input, or a new tensor."""
