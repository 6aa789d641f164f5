"""The types of this task's input and output."""

import torch

input_t = tuple[torch.Tensor, torch.Tensor]
"""`(input, output)`: a float16 and a float32 vector of `size` elements; fill `output`."""
output_t = torch.Tensor
"""The filled `output`."""
