"""Descriptions of nested values: the structure of a value and its tensors, without their bytes.

Judge and candidate exchange these. A candidate's descriptions are validated and never trusted.
"""

import math
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, Self, TypeVar

import torch
from pydantic import Field, TypeAdapter, model_validator

from runners.contract.wire import Wire

_COMMON = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool",
    "complex64", "complex128",
)  # fmt: skip
_BITS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2", "uint16", "uint32", "uint64",
)  # fmt: skip
"""Dtypes for which torch has few operations; some cannot even be copied on every device."""
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name) for name in (*_COMMON, *_BITS) if hasattr(torch, name)
}
"""The dtypes that can be transferred, by name, as far as this torch has them."""
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

DIMENSIONS_MOST = 16
INTEGER_BITS_MOST = 14_284
"""The most bits of an integer: Python reads and writes at most 4,300 digits."""
Integer = Annotated[int, Field(gt=-(1 << INTEGER_BITS_MOST), lt=1 << INTEGER_BITS_MOST)]
Extent = Annotated[int, Field(ge=0, le=1 << 48)]
Index = Annotated[int, Field(ge=0, lt=1 << 64)]


class TensorNode(Wire):
    """A tensor: shape and strides in elements, and the place of its first element.

    `offset` is in bytes from the beginning of the shared memory. If it is None, `address` is the
    candidate's pointer.
    """

    kind: Literal["tensor"] = "tensor"
    dtype: Annotated[str, Field(max_length=32)]
    shape: Annotated[tuple[Extent, ...], Field(max_length=DIMENSIONS_MOST)]
    stride: Annotated[tuple[Extent, ...], Field(max_length=DIMENSIONS_MOST)]
    offset: Index | None = None
    address: Index = 0
    device: Annotated[str, Field(max_length=16)] = "cpu"

    @model_validator(mode="after")
    def _check_strides(self) -> Self:
        if len(self.shape) != len(self.stride):
            raise ValueError("a tensor has one stride per extent")
        return self

    @property
    def span(self) -> int:
        """Elements from the first to the last one in memory, both included."""
        if 0 in self.shape:
            return 0
        reach = ((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        return 1 + sum(reach)

    @property
    def reach(self) -> int:
        """Bytes from the first element to the end of the last one."""
        return self.span * self.itemsize

    @property
    def copy_bytes(self) -> int:
        """The most bytes of a copy: gaps are copied too, and shared elements twice per use."""
        return max(self.span, self.numel * (1 + (self.span < self.numel))) * self.itemsize

    @property
    def numel(self) -> int:
        """The number of elements of its shape."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return DTYPES[self.dtype].itemsize


class SequenceNode(Wire):
    """A list or a tuple."""

    kind: Literal["list", "tuple"]
    items: tuple["Node", ...]


class DictNode(Wire):
    """A dict with text or integer keys."""

    kind: Literal["dict"] = "dict"
    items: tuple[tuple[str | Integer, "Node"], ...]

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if len(dict(self.items)) != len(self.items):
            raise ValueError("a key occurs twice")
        return self


class FloatNode(Wire):
    """A float in hexadecimal, which represents every value exactly, also NaN and infinities."""

    kind: Literal["float"] = "float"
    value: Annotated[str, Field(max_length=64)]


class ScalarNode(Wire):
    """An int, bool, str or None."""

    kind: Literal["scalar"] = "scalar"
    value: bool | Integer | str | None = None


Node = Annotated[
    TensorNode | SequenceNode | DictNode | FloatNode | ScalarNode, Field(discriminator="kind")
]
_NODE: TypeAdapter[Node] = TypeAdapter(Node)

Place = Callable[[torch.Tensor], TensorNode]
Fetch = Callable[[TensorNode], torch.Tensor]
Maker = Callable[[], Any]


class UndescribableError(TypeError):
    """A value that is not a nested structure of tensors, lists, tuples, mappings and scalars."""


DEPTH = 32
"""The deepest nesting of lists, tuples and dicts that is described or restored."""


def describe(value: object, place: Place, *, keys_sorted: bool = False) -> Node:
    """Describe a nested value; `place` is called for each tensor in order and returns its node.

    Mappings become dicts, and numpy's scalars Python's. Dicts are traversed in the order of their
    keys if `keys_sorted`, otherwise in their own order.
    UndescribableError if a part of the value cannot be described.
    """
    return _NODE.validate_python(fields(value, place, keys_sorted=keys_sorted))


def fields(
    value: object,
    place: Callable[[torch.Tensor], object],
    *,
    keys_sorted: bool = False,
    depth: int = 0,
) -> object:
    """Return the fields of a value's description, which takes less time than creating its nodes.

    `place` returns the fields of each tensor, or its node.
    """
    _check_depth(depth)
    if isinstance(value, torch.Tensor):
        return place(value)

    def inner(item: object) -> object:
        return fields(item, place, keys_sorted=keys_sorted, depth=depth + 1)

    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        numbers = depth < DEPTH and set(map(type, value)) <= {float, int}
        return {"kind": kind, "items": tuple(map(_fields_of_number if numbers else inner, value))}
    if isinstance(value, Mapping):
        named = [(_key(key), item) for key, item in value.items()]
        pairs = sorted(named, key=key_order) if keys_sorted else named
        return {"kind": "dict", "items": tuple((key, inner(item)) for key, item in pairs)}
    return _fields_of_scalar(value)


def key_order(item: tuple[str | int, object]) -> tuple[bool, str | int]:
    """Return the sort key of a dict's item: numbers come before texts."""
    key, _ = item
    return isinstance(key, str), key


def _check_depth(depth: int) -> None:
    if depth > DEPTH:
        raise UndescribableError(f"nested more than {DEPTH} deep")


def _key(key: object) -> str | int:
    key = _plain(key)
    if isinstance(key, (str, int)):
        return _transferable(int(key) if isinstance(key, bool) else key)  # equal keys of a dict
    raise UndescribableError(f"a dict key of type {type(key).__name__}")


def _fields_of_number(value: float) -> dict[str, object]:
    if isinstance(value, int):
        return {"kind": "scalar", "value": _transferable(value)}
    return {"kind": "float", "value": value.hex()}


def _fields_of_scalar(value: object) -> dict[str, object]:
    value = _plain(value)
    if isinstance(value, (float, int)):
        return _fields_of_number(value)
    if value is None:
        return {"kind": "scalar"}
    if isinstance(value, str):
        return {"kind": "scalar", "value": _transferable(value)}
    raise UndescribableError(f"a value of type {type(value).__name__}")


def _plain(value: object) -> object:
    """Return Python's own value for a scalar of numpy, which a program may not have imported."""
    numpy = sys.modules.get("numpy")
    return value.item() if numpy and isinstance(value, numpy.generic) else value


_T = TypeVar("_T")


def _transferable(value: _T) -> _T:
    """Return the value; UndescribableError for a text that is not Unicode, or a large integer."""
    if isinstance(value, int) and value.bit_length() > INTEGER_BITS_MOST:
        raise UndescribableError("an integer of more than 4,300 digits")
    try:
        if isinstance(value, str) and not value.isascii():
            value.encode()
    except UnicodeEncodeError:
        raise UndescribableError("a text with lone surrogates, which JSON cannot have") from None
    return value


def restore(node: Node, fetch: Fetch) -> Any:  # noqa: ANN401 - the value's type is the node's
    """Build the value that a node describes; `fetch` returns each tensor."""
    return restorer(node, lambda tensor: partial(fetch, tensor))()


def restorer(node: Node, maker: Callable[[TensorNode], Maker], depth: int = 0) -> Maker:
    """Return a function that builds the value in each call; `maker` is called once per tensor."""
    _check_depth(depth)
    match node:
        case TensorNode():
            return maker(node)
        case SequenceNode():
            items = [restorer(item, maker, depth + 1) for item in node.items]
            kind = list if node.kind == "list" else tuple
            return lambda: kind(item() for item in items)
        case DictNode():
            pairs = [(key, restorer(item, maker, depth + 1)) for key, item in node.items]
            return lambda: {key: item() for key, item in pairs}
        case FloatNode():
            return partial(float.fromhex, node.value)
        case ScalarNode():
            return lambda: node.value


def tensors(node: Node) -> tuple[TensorNode, ...]:
    """Return the tensors of a structure, in order."""
    match node:
        case TensorNode():
            return (node,)
        case SequenceNode():
            return tuple(tensor for item in node.items for tensor in tensors(item))
        case DictNode():
            return tuple(tensor for _, item in node.items for tensor in tensors(item))
        case FloatNode() | ScalarNode():
            return ()


def leaves(value: object) -> tuple[torch.Tensor, ...]:
    """Return the tensors of a nested value, in the order in which `tensors` returns their nodes."""
    if isinstance(value, torch.Tensor):
        return (value,)
    items = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(items, (list, tuple)):
        return ()
    return tuple(tensor for item in items for tensor in leaves(item))


def on_host(node: TensorNode) -> bool:
    """Whether a tensor has elements in host memory."""
    return node.device != "cuda" and node.span > 0


def has_host_part(node: Node) -> bool:
    """Whether a part of a value is not transferred through GPU memory.

    That is any scalar except None, and any host tensor with elements.
    """
    match node:
        case TensorNode():
            return on_host(node)
        case SequenceNode():
            return any(has_host_part(item) for item in node.items)
        case DictNode():
            return any(has_host_part(item) for _, item in node.items)
        case FloatNode():
            return True
        case ScalarNode():
            return node.value is not None


def replaced(node: Node, replace: Callable[[TensorNode], TensorNode]) -> Node:
    """Return the same structure with every tensor node replaced."""
    match node:
        case TensorNode():
            return replace(node)
        case SequenceNode():
            items = tuple(replaced(item, replace) for item in node.items)
            return node.model_copy(update={"items": items})
        case DictNode():
            pairs = tuple((key, replaced(item, replace)) for key, item in node.items)
            return node.model_copy(update={"items": pairs})
        case FloatNode() | ScalarNode():
            return node


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of the same memory, as integers if torch has few operations for the dtype."""
    name = str(tensor.dtype).removeprefix("torch.")
    return tensor.view(_INTEGERS[tensor.element_size()]) if name in _BITS else tensor


def copy_into(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy a tensor into one of the same dtype, shape and strides; the elements may repeat."""
    source = bits(source.detach())
    target = bits(target)
    for dimension, stride in enumerate(target.stride()):
        if stride == 0 and target.shape[dimension] > 1:  # torch refuses to write such an element
            target, source = target.narrow(dimension, 0, 1), source.narrow(dimension, 0, 1)
    target.copy_(source)


def clone(value: Any) -> Any:  # noqa: ANN401 - the same type
    """Return a deep copy that keeps every tensor's strides."""
    if isinstance(value, torch.Tensor):
        copied = torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device=value.device
        )
        copy_into(copied, value)
        return copied
    if isinstance(value, (list, tuple)):
        return (list if isinstance(value, list) else tuple)(map(clone, value))
    if isinstance(value, Mapping):
        return {key: clone(item) for key, item in value.items()}
    return value
