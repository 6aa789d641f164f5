"""A submission's `ModelNew` as the kernel that a candidate is asked to call.

This runs in the candidate, beside the submission: nothing here protects the judge.
"""

from collections.abc import Callable
from typing import Any

import torch

from runners.harness import weights

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""The element types of inputs and weights, by the names that KernelBench gives them."""
FUNCTION = "forward"
"""What a problem, and an answer to it, may be in place of a model."""


class ModelKernel:
    """Makes the model at the first call, which is never timed, and calls its forward from then on.

    It is made under the reference's own seed and then given the reference's weights, so that what a
    constructor prepares from its weights is right as well.
    """

    def __init__(self, model_class: Callable[..., Any]) -> None:
        self.model_class = model_class
        self.made_of: int | None = None
        self.model: Any = None

    def __call__(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the model gives
        """The model's output for the inputs that lie in `data`."""
        if self.made_of != data["seed"]:
            self.model = self._made(data)
            self.made_of = data["seed"]
        with torch.no_grad():
            return self.model(*data["inputs"])

    def _made(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - the submission's own class
        device = data["weights"]["table"].device
        torch.manual_seed(data["seed"])
        model = self.model_class(*data["init"])
        if not isinstance(model, torch.nn.Module):
            return model
        model = model.to(device=device, dtype=PRECISIONS[data["precision"]])
        weights.load(model, weights.unpack(data["weights"]))
        return model
