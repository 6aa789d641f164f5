"""Imports a submission as a Python module and wraps its KernelBench model.

This runs in the candidate together with the submission, so nothing here protects the judge.
"""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from runners.harness.protocol import weights
from runners.languages import InvalidSubmissionError


def imported(folder: Path, file_name: str, **names: Any) -> ModuleType:  # noqa: ANN401 - any
    """Import a file of the candidate's folder, whose other files it can import.

    `names` are defined in the module before it runs. Exceptions of the import pass through, because
    they are the submission's failure.
    """
    sys.path.insert(0, str(folder))
    name = Path(file_name).stem
    spec = importlib.util.spec_from_file_location(name, folder / file_name)
    if spec is None or spec.loader is None:
        raise InvalidSubmissionError(f"{file_name} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    vars(module).update(names)
    spec.loader.exec_module(module)
    return module


PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
"""KernelBench's name of a precision -> dtype of inputs and weights."""
FUNCTION = "forward"
"""The function that a problem or a submission may define instead of a model."""


class ModelKernel:
    """Creates the model at the first call, which is never timed, and calls it.

    The model is created with the reference's seed and then gets the reference's weights. The seed
    is needed for what a constructor derives from its initial weights.
    """

    def __init__(self, model_class: Callable[..., Any]) -> None:
        self.model_class = model_class
        self.created_with: int | None = None
        self.model: Any = None

    def __call__(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever the model gives
        """The model's output for the inputs in `data`."""
        if self.created_with != data["seed"]:
            self.model = self._create(data)
            self.created_with = data["seed"]
        with torch.no_grad():
            return self.model(*data["inputs"])

    def _create(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - the submission's own class
        device = data["weights"]["table"].device
        torch.manual_seed(data["seed"])
        model = self.model_class(*data["init"])
        if not isinstance(model, torch.nn.Module):
            return model
        model = model.to(device=device, dtype=PRECISIONS[data["precision"]])
        weights.load(model, weights.unpack(data["weights"]))
        return model
