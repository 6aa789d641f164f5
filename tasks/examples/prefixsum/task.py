"""The types of this task's input and output."""

import torch

input_t = tuple[torch.Tensor, torch.Tensor]
"""`(input, output)`: float32 vectors of `size` elements; fill `output`."""
output_t = torch.Tensor
"""The filled `output`."""
