"""Imports a submission as a Python module; gives its KernelBench model the reference's weights.

The judge packs the weights into one flat tensor per dtype and a table, so a model may have any
number of them. Everything else runs in the candidate together with the submission, so nothing here
protects the judge.
"""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from math import prod
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from runners.languages import InvalidSubmissionError


def import_file(folder: Path, file_name: str, **names: Any) -> ModuleType:  # noqa: ANN401 - any
    """Import a file of the candidate's folder; it can import the folder's other files.

    `names` are defined in the module before it runs. Exceptions of the import are not caught,
    because they are the submission's.
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

    The model is created with the reference's seed and then gets the reference's weights. It needs
    the seed too, because its constructor may derive other values from the initial weights.
    """

    def __init__(self, model_class: Callable[..., Any]) -> None:
        self.model_class = model_class
        self.created_with_seed: int | None = None
        self.model: Any = None

    def __call__(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - any output
        """The model's output for the inputs in `data`."""
        if self.created_with_seed != data["seed"]:
            self.model = self._create(data)
            self.created_with_seed = data["seed"]
        with torch.no_grad():
            return self.model(*data["inputs"])

    def _create(self, data: dict[str, Any]) -> Any:  # noqa: ANN401 - the submission's own class
        device = data["weights"]["table"].device
        torch.manual_seed(data["seed"])
        model = self.model_class(*data["init"])
        if not isinstance(model, torch.nn.Module):
            return model
        model = model.to(device=device, dtype=PRECISIONS[data["precision"]])
        load_weights(model, unpack_weights(data["weights"]))
        return model


WEIGHT_ALIGNMENT = 256
"""Bytes; every weight starts at a multiple of this, like torch's own allocations."""

WeightEntry = tuple[str, str, int, tuple[int, ...]]
"""Name, dtype, first element in the flat tensor of that dtype, and shape."""


def pack_weights(state: Mapping[str, torch.Tensor], device: torch.device | str) -> dict[str, Any]:
    """Return a model's state as one flat tensor per dtype, and a table in JSON as bytes."""
    sizes: dict[str, int] = {}
    entries: list[WeightEntry] = []
    for name, tensor in state.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        offset = sizes.get(dtype, 0)
        entries.append((name, dtype, offset, tuple(tensor.shape)))
        step = max(1, WEIGHT_ALIGNMENT // tensor.element_size())
        sizes[dtype] = offset + -(-tensor.numel() // step) * step
    flat = {
        dtype: torch.zeros(size, dtype=getattr(torch, dtype), device=device)
        for dtype, size in sizes.items()
    }
    for entry, tensor in zip(entries, state.values(), strict=True):
        _view(flat, entry).copy_(tensor)
    table = json.dumps(entries).encode()
    return {"flat": flat, "table": torch.tensor(list(table), dtype=torch.uint8, device=device)}


def unpack_weights(packed: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the weights by name, as views into the flat tensors."""
    entries = json.loads(bytes(packed["table"].tolist()))
    return {entry[0]: _view(packed["flat"], entry) for entry in entries}


def _view(flat: Mapping[str, torch.Tensor], entry: WeightEntry) -> torch.Tensor:
    _, dtype, offset, shape = entry
    return flat[dtype][offset : offset + prod(shape)].view(tuple(shape))


def load_weights(model: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> bool:
    """Load these weights into a model, by name or else by order; False if the shapes differ.

    Loading by order suits a model that has other names and creates its weights in the reference's
    order. In any other order, the same seed would not give the reference's values either.
    """
    model_weights = model.state_dict(keep_vars=True)
    if _shapes(model_weights.items()) == _shapes(weights.items()):
        pairs = [(model_weights[name], weights[name]) for name in weights]
    elif [tensor.shape for tensor in model_weights.values()] == [
        tensor.shape for tensor in weights.values()
    ]:
        pairs = list(zip(model_weights.values(), weights.values(), strict=True))
    else:
        return False
    with torch.no_grad():
        for target, weight in pairs:
            target.copy_(weight)
    return True


def _shapes(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in named}
