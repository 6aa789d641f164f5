"""Numbers, texts and dict keys of an input, which a candidate gets only when its window opens.

A request describes the input without them: it is sent before the window, like the places of the
tensors, whose bytes the candidate cannot read yet either. On the CPU it describes nothing if the
input has another structure than the candidate has seen, such as lengths that the seed decides.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from runners.harness.protocol import channel, values


def of(node: values.Node) -> list[object]:
    """Return the scalars and dict keys of a structure, in order."""
    found: list[object] = []
    _blank(node, found)
    return found


def without(node: values.Node) -> values.Node:
    """Return a structure without its scalars and dict keys."""
    return _blank(node, [])


def placeholders(node: values.Node) -> values.Node:
    """Return a structure with other scalars, about as long, and without its tensors."""
    match node:
        case values.TensorNode():
            return values.ScalarNode()
        case values.SequenceNode():
            return node.model_copy(update={"items": tuple(map(placeholders, node.items))})
        case values.DictNode():
            pairs = tuple((key, placeholders(item)) for key, item in node.items)
            return node.model_copy(update={"items": pairs})
        case values.FloatNode():
            return values.FloatNode(value=(1 / 3).hex())
        case values.ScalarNode(value=it):
            like = "x" * len(it) if isinstance(it, str) else it and type(it)(1 << it.bit_length())
            return values.ScalarNode(value=like)


def are_known(node: values.Node, known: Sequence[object] | None) -> bool:
    """Whether a structure has exactly these scalars, or `known` is None."""
    return known is None or _typed(of(node)) == _typed(known)


def _typed(found: Sequence[object]) -> list[tuple[type, object]]:
    return [(type(each), each) for each in found]  # 1 is not True


def withheld(
    order: channel.CandidateRequest,
    known: Sequence[object] | None,
    *,
    whole: bool = False,
) -> tuple[channel.CandidateRequest, bytes]:
    """Return the request without scalars, and the frame that has them.

    If they are known, return the request as it is and an empty frame. Device code gets none.
    If `whole`, return a request without a value, and as the frame the whole one. ValueError if the
    frame is too long.
    """
    if order.launch is not None or order.value is None or known is None:
        return order, b""
    if whole:
        return order.model_copy(update={"value": None, "withheld": True}), channel.encode(order)
    found: list[object] = []
    blank = _blank(order.value, found)
    if _typed(found) == _typed(known):
        return order, b""
    frame = json.dumps(found).encode()
    if len(frame) > channel.FRAME_MAX:
        raise ValueError(f"{len(frame)} bytes of scalars; at most {channel.FRAME_MAX} are allowed")
    return order.model_copy(update={"value": blank, "withheld": True}), frame


def _blank(node: values.Node, found: list[object]) -> values.Node:
    match node:
        case values.TensorNode():
            return node
        case values.SequenceNode():
            items = tuple([_blank(item, found) for item in node.items])
            return node.model_copy(update={"items": items})
        case values.DictNode():
            pairs = []
            for number, (key, item) in enumerate(node.items):
                found.append(key)
                pairs.append((number, _blank(item, found)))
            return node.model_copy(update={"items": tuple(pairs)})
        case values.FloatNode():
            found.append(node.value)
            return values.FloatNode(value=(0.0).hex())
        case values.ScalarNode():
            found.append(node.value)
            return values.ScalarNode()


def filled(node: values.Node | None, frame: bytes, value: object) -> Any:  # noqa: ANN401 - any input
    """Return `value`, which was restored from `node` without its scalars and keys, with them.

    A structure of tensors alone has none, and its value is returned as it is.
    """
    return value if node is None else _filled(node, iter(json.loads(frame)), value)


def _filled(node: values.Node, found: Iterator[Any], value: Any) -> Any:  # noqa: ANN401 - likewise
    match node:
        case values.TensorNode():
            return value
        case values.SequenceNode():
            items = [
                next(found) if type(item) is values.ScalarNode else _filled(item, found, part)
                for item, part in zip(node.items, value, strict=True)
            ]
            return items if node.kind == "list" else tuple(items)
        case values.DictNode():
            parts = zip(node.items, value.values(), strict=True)
            return {next(found): _filled(item, found, part) for (_, item), part in parts}
        case values.FloatNode():
            return float.fromhex(next(found))
        case values.ScalarNode():
            return next(found)


def has_text(value: object) -> bool:
    """Whether a text is in a value, also as the key of a dict."""
    if isinstance(value, dict):
        return any(map(has_text, (*value, *value.values())))
    if isinstance(value, (list, tuple)):
        return any(map(has_text, value))
    return isinstance(value, str)
