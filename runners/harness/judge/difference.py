"""Compares the structures of two described values, and reorders one like the other."""

from runners.harness.protocol.values import (
    DictNode,
    Node,
    ScalarNode,
    SequenceNode,
    TensorNode,
    key_order,
)


def difference(expected: Node, actual: Node, where: str = "the output") -> str | None:
    """Return the first difference of two structures in type, shape, dtype or device, as a text.

    None if there is no difference.
    """
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


def by_key(node: Node) -> Node:
    """Return the same structure with every dict sorted by key, numbers before texts."""
    match node:
        case SequenceNode():
            return node.model_copy(update={"items": tuple(by_key(item) for item in node.items)})
        case DictNode():
            pairs = tuple((key, by_key(item)) for key, item in sorted(node.items, key=key_order))
            return node.model_copy(update={"items": pairs})
        case _:
            return node


def like(pattern: Node, node: Node) -> Node:
    """Return `node` with its dicts in the order of `pattern`; both must have the same structure."""
    match pattern, node:
        case SequenceNode(), SequenceNode():
            items = tuple(map(like, pattern.items, node.items))
            return node.model_copy(update={"items": items})
        case DictNode(), DictNode():
            found = dict(node.items)
            pairs = tuple((key, like(each, found[key])) for key, each in pattern.items)
            return node.model_copy(update={"items": pairs})
        case _:
            return node
