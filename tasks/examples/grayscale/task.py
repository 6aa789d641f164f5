"""The types of this task's input and output."""

import torch

input_t = tuple[torch.Tensor, torch.Tensor]
"""`(rgb, output)`: float32, `height` x `width` x 3 and `height` x `width`; fill `output`."""
output_t = torch.Tensor
"""The filled `output`."""
