"""Descriptions of nested values: what a tensor structure looks like, without its bytes.

Both sides speak these; what comes from a candidate is validated here and nowhere believed.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, TypeAdapter, model_validator

from runners.contract.wire import Wire

DTYPES: dict[str, torch.dtype] = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8,
        torch.int16, torch.int32, torch.int64, torch.bool, torch.complex64, torch.complex128,
        torch.float8_e4m3fn, torch.float8_e5m2, torch.uint16, torch.uint32, torch.uint64,
    )
}  # fmt: skip
"""The element types that may travel, by name."""

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
NODE: TypeAdapter[Node] = TypeAdapter(Node)

Place = Callable[[torch.Tensor], TensorNode]
Fetch = Callable[[TensorNode], torch.Tensor]


class UndescribableError(TypeError):
    """A value that is no nesting of tensors, lists, tuples, dicts and scalars."""


DEPTH = 32
"""How deep lists, tuples and dicts may lie in one another, in either direction."""


def describe(value: object, place: Place) -> Node:
    """Describe a nested value; `place` says where each tensor lies."""
    return _describe(value, place, 0)


def _describe(value: object, place: Place, depth: int) -> Node:
    _refuse_deep(depth)
    if isinstance(value, torch.Tensor):
        return place(value)
    if isinstance(value, (list, tuple)):
        items = tuple(_describe(item, place, depth + 1) for item in value)
        return SequenceNode(kind="list" if isinstance(value, list) else "tuple", items=items)
    if isinstance(value, dict):
        pairs = ((_key(key), _describe(item, place, depth + 1)) for key, item in value.items())
        return DictNode(items=tuple(pairs))
    return _describe_scalar(value)


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


def clone(value: Any) -> Any:  # noqa: ANN401 - as the value came
    """A deep copy which keeps every tensor's strides."""
    if isinstance(value, torch.Tensor):
        copied = torch.empty_strided(
            value.shape, value.stride(), dtype=value.dtype, device=value.device
        )
        return copied.copy_(value.detach())
    if isinstance(value, list):
        return [clone(item) for item in value]
    if isinstance(value, tuple):
        return tuple(clone(item) for item in value)
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    return value


def difference(expected: Node, actual: Node, where: str = "the output") -> str | None:
    """In words, the first difference of two structures in type, shape, dtype or device."""
    found: str | None = None
    match expected, actual:
        case TensorNode(), TensorNode():
            found = _tensor_difference(expected, actual, where)
        case SequenceNode(), SequenceNode():
            found = _sequence_difference(expected, actual, where)
        case DictNode(), DictNode():
            found = _dict_difference(expected, actual, where)
        case _ if _kind(expected) != _kind(actual):
            found = f"{where} is a {_kind(actual)}, a {_kind(expected)} is expected"
    return found


def _kind(node: Node) -> str:
    return type(node.value).__name__ if isinstance(node, ScalarNode) else node.kind


def _sequence_difference(expected: SequenceNode, actual: SequenceNode, where: str) -> str | None:
    if len(expected.items) != len(actual.items):
        return f"{where} has {len(actual.items)} items, {len(expected.items)} are expected"
    pairs = zip(expected.items, actual.items, strict=True)
    found = (difference(e, a, f"{where}[{i}]") for i, (e, a) in enumerate(pairs))
    return next((text for text in found if text), None)


def _tensor_difference(expected: TensorNode, actual: TensorNode, where: str) -> str | None:
    for name in ("shape", "dtype", "device"):
        want, got = getattr(expected, name), getattr(actual, name)
        if want != got:
            spelled = (list(v) if isinstance(v, tuple) else v for v in (got, want))
            return "{} has {} {}, {} is expected".format(where, name, *spelled)
    return None


def _dict_difference(expected: DictNode, actual: DictNode, where: str) -> str | None:
    want, got = dict(expected.items), dict(actual.items)
    if want.keys() != got.keys():
        return (
            f"{where} has the keys {sorted(map(str, got))}, {sorted(map(str, want))} are expected"
        )
    found = (difference(want[key], got[key], f"{where}[{key!r}]") for key in want)
    return next((text for text in found if text), None)
