"""Packs a model's weights into one flat tensor per dtype and a table, so their number is unlimited.

The judge packs them; a candidate loads them into the submission's model.
"""

import json
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import torch

ALIGNMENT = 256
"""Bytes; every weight starts at a multiple of this, like torch's own allocations."""

Entry = tuple[str, str, int, tuple[int, ...]]
"""Name, dtype, first element in the flat tensor of that dtype, and shape."""


def pack(state: Mapping[str, torch.Tensor], device: torch.device | str) -> dict[str, Any]:
    """Return a model's state as one flat tensor per dtype, and a table in JSON as bytes."""
    sizes: dict[str, int] = {}
    entries: list[Entry] = []
    for name, tensor in state.items():
        dtype = str(tensor.dtype).removeprefix("torch.")
        offset = sizes.get(dtype, 0)
        entries.append((name, dtype, offset, tuple(tensor.shape)))
        step = max(1, ALIGNMENT // tensor.element_size())
        sizes[dtype] = offset + -(-tensor.numel() // step) * step
    flat = {
        dtype: torch.zeros(size, dtype=getattr(torch, dtype), device=device)
        for dtype, size in sizes.items()
    }
    for entry, tensor in zip(entries, state.values(), strict=True):
        _view(flat, entry).copy_(tensor)
    table = json.dumps(entries).encode()
    return {"flat": flat, "table": torch.tensor(list(table), dtype=torch.uint8, device=device)}


def unpack(packed: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the weights by name, as views into the flat tensors."""
    entries = json.loads(bytes(packed["table"].tolist()))
    return {entry[0]: _view(packed["flat"], entry) for entry in entries}


def _view(flat: Mapping[str, torch.Tensor], entry: Entry) -> torch.Tensor:
    _, dtype, offset, shape = entry
    return flat[dtype][offset : offset + prod(shape)].view(tuple(shape))


def load(model: torch.nn.Module, weights: Mapping[str, torch.Tensor]) -> bool:
    """Load these weights into a model, by name or else by order; False if the shapes differ.

    Loading by order is right for a model with other names that creates its weights in the
    reference's order. In another order, the same seed would not give it the reference's values.
    """
    own = model.state_dict(keep_vars=True)
    if _shapes(own.items()) == _shapes(weights.items()):
        pairs = [(own[name], weights[name]) for name in weights]
    elif [each.shape for each in own.values()] == [each.shape for each in weights.values()]:
        pairs = list(zip(own.values(), weights.values(), strict=True))
    else:
        return False
    with torch.no_grad():
        for mine, given in pairs:
            mine.copy_(given)
    return True


def _shapes(named: Iterable[tuple[str, torch.Tensor]]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in named}
