"""Descriptions of nested values: what a tensor structure looks like, without its bytes.

Both sides speak these; what comes from a candidate is validated here and nowhere believed.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, model_validator

from runners.contract.wire import Wire

_COUNTED = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool",
    "complex64", "complex128",
)  # fmt: skip
_BITS = (
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float4_e2m1fn_x2", "uint16", "uint32", "uint64",
)  # fmt: skip
"""Types for which torch has few operations, of some not even a copy on every device."""
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name) for name in (*_COUNTED, *_BITS) if hasattr(torch, name)
}
"""The element types that may travel, by name: those of them that this torch knows."""
_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

Extent = Annotated[int, Field(ge=0, le=1 << 48)]
Index = Annotated[int, Field(ge=0, lt=1 << 64)]


class TensorNode(Wire):
    """A tensor: shape and strides in elements, and where its first element lies.

    `offset` counts bytes into the shared arena; `address` is the candidate's own pointer,
    and `offset` is then None.
    """

    kind: Literal["tensor"] = "tensor"
    dtype: Annotated[str, Field(max_length=32)]
    shape: Annotated[tuple[Extent, ...], Field(max_length=16)]
    stride: Annotated[tuple[Extent, ...], Field(max_length=16)]
    offset: Index | None = None
    address: Index = 0
    device: Annotated[str, Field(max_length=16)] = "cpu"

    @model_validator(mode="after")
    def _one_stride_an_extent(self) -> Self:
        if len(self.shape) != len(self.stride):
            raise ValueError("as many strides as extents are needed")
        return self

    @property
    def span(self) -> int:
        """Elements from the first to the last one reached, both counted."""
        if 0 in self.shape:
            return 0
        reach = ((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))
        return 1 + sum(reach)

    @property
    def reach(self) -> int:
        """Bytes from the first element to the end of the last one."""
        return self.span * self.itemsize

    @property
    def room(self) -> int:
        """Bytes that a copy takes at most: gaps between elements are copied as well."""
        return max(self.span, self.numel) * self.itemsize

    @property
    def numel(self) -> int:
        """How many elements the tensor shows."""
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
    items: tuple[tuple[str | int, "Node"], ...]

    @model_validator(mode="after")
    def _each_key_once(self) -> Self:
        if len(dict(self.items)) != len(self.items):
            raise ValueError("a key stands there twice")
        return self


class FloatNode(Wire):
    """A float, spelled in hexadecimal so that every value survives, NaN and infinities too."""

    kind: Literal["float"] = "float"
    value: Annotated[str, Field(max_length=64)]


class ScalarNode(Wire):
    """An integer, a truth value, a text or None."""

    kind: Literal["scalar"] = "scalar"
    value: bool | int | str | None = None


Node = Annotated[
    TensorNode | SequenceNode | DictNode | FloatNode | ScalarNode, Field(discriminator="kind")
]

Place = Callable[[torch.Tensor], TensorNode]
Fetch = Callable[[TensorNode], torch.Tensor]


class UndescribableError(TypeError):
    """A value that is no nesting of tensors, lists, tuples, dicts and scalars."""


DEPTH = 32
"""How deep lists, tuples and dicts may lie in one another, in either direction."""


def describe(value: object, place: Place, *, keys_sorted: bool = False) -> Node:
    """Describe a nested value; `place` says where each tensor lies, one after the other.

    With `keys_sorted` dicts are gone through in the order of their keys, else in their own.
    """
    return _describe(value, place, 0, keys_sorted=keys_sorted)


def _describe(value: object, place: Place, depth: int, *, keys_sorted: bool) -> Node:
    _refuse_deep(depth)
    if isinstance(value, torch.Tensor):
        return place(value)

    def inner(item: object) -> Node:
        return _describe(item, place, depth + 1, keys_sorted=keys_sorted)

    if isinstance(value, (list, tuple)):
        items = tuple(map(inner, value))
        return SequenceNode(kind="list" if isinstance(value, list) else "tuple", items=items)
    if isinstance(value, dict):
        named = [(_key(key), item) for key, item in value.items()]
        pairs = sorted(named, key=key_order) if keys_sorted else named
        return DictNode(items=tuple((key, inner(item)) for key, item in pairs))
    return _describe_scalar(value)


def key_order(item: tuple[str | int, object]) -> tuple[bool, str | int]:
    """By which the items of a dict are sorted: numbers before texts."""
    key, _ = item
    return isinstance(key, str), key


def _refuse_deep(depth: int) -> None:
    if depth > DEPTH:
        raise UndescribableError(f"nested more than {DEPTH} deep")


def _key(key: object) -> str | int:
    if isinstance(key, (str, int)):
        return key
    raise UndescribableError(f"a dict key of type {type(key).__name__}")


def _describe_scalar(value: object) -> Node:
    if isinstance(value, float):
        return FloatNode(value=value.hex())
    if value is None or isinstance(value, (bool, int, str)):
        return ScalarNode(value=value)
    raise UndescribableError(f"a value of type {type(value).__name__}")


def restore(node: Node, fetch: Fetch) -> Any:  # noqa: ANN401 - the value's type is the node's
    """Build the value which a node describes; `fetch` gives each tensor."""
    return _restore(node, fetch, 0)


def _restore(node: Node, fetch: Fetch, depth: int) -> Any:  # noqa: ANN401 - as `restore`
    _refuse_deep(depth)
    match node:
        case TensorNode():
            return fetch(node)
        case SequenceNode():
            items = (_restore(item, fetch, depth + 1) for item in node.items)
            return list(items) if node.kind == "list" else tuple(items)
        case DictNode():
            return {key: _restore(item, fetch, depth + 1) for key, item in node.items}
        case FloatNode():
            return float.fromhex(node.value)
        case ScalarNode():
            return node.value


def tensors(node: Node) -> tuple[TensorNode, ...]:
    """The tensors of a structure, in order."""
    match node:
        case TensorNode():
            return (node,)
        case SequenceNode():
            return tuple(found for item in node.items for found in tensors(item))
        case DictNode():
            return tuple(found for _, item in node.items for found in tensors(item))
        case FloatNode() | ScalarNode():
            return ()


def leaves(value: object) -> tuple[torch.Tensor, ...]:
    """The tensors of a nested value, in the order in which `tensors` gives their nodes."""
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, (list, tuple)):
        return tuple(found for item in value for found in leaves(item))
    if isinstance(value, dict):
        return tuple(found for item in value.values() for found in leaves(item))
    return ()


def on_host(node: TensorNode) -> bool:
    """Whether anything of a tensor lies in host memory."""
    return node.device != "cuda" and node.span > 0


def told_by_host(node: Node) -> bool:
    """Whether a part of a value's content travels outside the GPU's memory.

    That is any scalar but None, and any host tensor with elements.
    """
    match node:
        case TensorNode():
            return on_host(node)
        case SequenceNode():
            return any(told_by_host(item) for item in node.items)
        case DictNode():
            return any(told_by_host(item) for _, item in node.items)
        case FloatNode():
            return True
        case ScalarNode():
            return node.value is not None


def replaced(node: Node, replace: Callable[[TensorNode], TensorNode]) -> Node:
    """The same structure with other tensors in it."""
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
    """The same memory, as integers where torch has few operations for the tensor's own type."""
    name = str(tensor.dtype).removeprefix("torch.")
    return tensor.view(_WHOLE[tensor.element_size()]) if name in _BITS else tensor


def clone(value: Any) -> Any:  # noqa: ANN401 - as the value came
    """A deep copy which keeps every tensor's strides."""
    if isinstance(value, torch.Tensor):
        copied = torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device=value.device
        )
        bits(copied).copy_(bits(value.detach()))
        return copied
    if isinstance(value, list):
        return [clone(item) for item in value]
    if isinstance(value, tuple):
        return tuple(clone(item) for item in value)
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    return value
