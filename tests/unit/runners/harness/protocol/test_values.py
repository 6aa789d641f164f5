import math
from collections import UserDict
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from runners.harness.protocol.values import (
    DTYPES,
    INTEGER_BITS_MOST,
    DictNode,
    FloatNode,
    Node,
    ScalarNode,
    SequenceNode,
    TensorNode,
    UndescribableError,
    bits,
    clone,
    describe,
    has_host_part,
    leaves,
    replaced,
    restore,
    tensors,
)

NODE: TypeAdapter[Node] = TypeAdapter(Node)


class Shelf:
    """Keeps the tensors of a described value by number."""

    def __init__(self) -> None:
        self.kept: list[torch.Tensor] = []

    def place(self, tensor: torch.Tensor) -> TensorNode:
        self.kept.append(tensor)
        return TensorNode(
            dtype=str(tensor.dtype).removeprefix("torch."),
            shape=tuple(tensor.shape),
            stride=tuple(tensor.stride()),
            address=len(self.kept) - 1,
        )

    def fetch(self, node: TensorNode) -> torch.Tensor:
        return self.kept[node.address]


def node_of(value: object) -> Node:
    return describe(value, Shelf().place)


def travelled(value: object) -> object:
    shelf = Shelf()
    text = NODE.dump_json(describe(value, shelf.place))
    return restore(NODE.validate_json(text), shelf.fetch)


scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=5) | st.floats()
)
nested = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(nested)
def test_a_nested_value_survives_the_journey(value: object) -> None:
    assert repr(travelled(value)) == repr(value)  # NaN equals itself by its name alone


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", None, math.inf, -0.0])
def test_a_scalar_keeps_its_type(value: object) -> None:
    assert type(travelled(value)) is type(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.bool_(1), True),
        (np.str_("three"), "three"),
        ({np.int64(3): [np.float32(0.5)]}, {3: [0.5]}),
        (MappingProxyType({"b": 1, "a": (2,)}), {"b": 1, "a": (2,)}),
        (UserDict({"a": [UserDict({"b": None})]}), {"a": [{"b": None}]}),
    ],
    ids=repr,
)
def test_scalars_of_numpy_and_mappings_become_pythons_own(value: object, plain: object) -> None:
    found = travelled(value)
    assert found == plain
    assert type(found) is type(plain)


def test_the_tensors_of_a_mapping_are_found_and_copied() -> None:
    value = MappingProxyType({"a": torch.ones(1), "b": [torch.zeros(2)]})
    assert len(leaves(value)) == len(tensors(node_of(value))) == 2
    assert clone(value)["a"] is not value["a"]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_every_known_type_keeps_its_name(dtype: torch.dtype) -> None:
    found = node_of(torch.zeros(2, dtype=dtype))

    assert isinstance(found, TensorNode)
    assert DTYPES[found.dtype] is dtype
    assert found.itemsize == dtype.itemsize


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_a_copy_of_any_type_has_its_bytes_and_strides(dtype: torch.dtype) -> None:
    numbers = torch.arange(24 * dtype.itemsize, dtype=torch.uint8) % 2
    turned = numbers.view(dtype).view(4, 6).T

    copied = clone(turned)

    assert (copied.dtype, copied.stride()) == (dtype, turned.stride())
    assert bytes(copied.untyped_storage()) == bytes(turned.untyped_storage())
    assert torch.equal(bits(copied), bits(turned))


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (1, 4)])
def test_a_copy_of_repeated_elements_repeats_them(shape: tuple[int, int]) -> None:
    wide = torch.arange(4.0).expand(shape)

    copied = clone(wide)

    assert torch.equal(copied, wide)
    assert copied.stride() == wide.stride()
    assert copied.untyped_storage().nbytes() <= wide.untyped_storage().nbytes()


def test_tensors_are_found_in_the_order_of_their_nodes() -> None:
    value = {"b": [torch.zeros(1), (torch.zeros(2), 3.0)], "a": torch.zeros(3), "c": None}

    assert [leaf.numel() for leaf in leaves(value)] == [1, 2, 3]
    assert [found.numel for found in tensors(node_of(value))] == [1, 2, 3]


def test_a_strided_tensor_reaches_over_its_gaps() -> None:
    found = node_of(torch.zeros(4, 6)[:, ::3])

    assert isinstance(found, TensorNode)
    assert (found.span, found.numel, found.reach) == (22, 8, 88)


def test_an_empty_tensor_reaches_nothing() -> None:
    found = node_of(torch.zeros(0, 5))

    assert isinstance(found, TensorNode)
    assert (found.span, found.reach, found.numel) == (0, 0, 0)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({1, 2}, "set"),
        ([object()], "object"),
        ({(1,): 2}, "dict key"),
        ({"a": 1j}, "complex"),
        (np.ones(1), "ndarray"),
        (np.complex64(1), "complex"),
        ("caf\udce9", "^a text with lone surrogates"),
        ({"\udce9": 1}, "^a text with lone surrogates"),
    ],
)
def test_what_is_no_structure_of_tensors_is_refused(value: object, why: str) -> None:
    with pytest.raises(UndescribableError, match=why):
        node_of(value)


def test_an_integer_has_as_many_digits_as_python_reads() -> None:
    assert travelled(-(10**4299)) == -(10**4299)
    for value in (10**4300, -(10**9999), {10**4300: 1}):
        with pytest.raises(UndescribableError, match=r"^an integer of more than 4,300 digits"):
            node_of(value)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_reply_has_no_integer_that_could_not_be_described(sign: int) -> None:
    """The judge describes outputs that it has read, and ended if it could not."""
    most, more = sign * ((1 << INTEGER_BITS_MOST) - 1), sign * (1 << INTEGER_BITS_MOST)

    assert node_of(most) == ScalarNode(value=most)
    with pytest.raises(ValidationError):
        ScalarNode.model_validate_json(f'{{"value": {more}}}')
    with pytest.raises(ValidationError):
        DictNode.model_validate({"items": [(more, {"kind": "scalar"})]})


def test_endless_nesting_is_refused() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(UndescribableError, match="32 deep"):
        node_of(value)


@pytest.mark.parametrize("depth", [32, 33])
def test_what_is_described_deeper_than_it_may_be_is_not_restored(depth: int) -> None:
    node: Node = FloatNode(value="0x1p0")
    for _ in range(depth):
        node = SequenceNode(kind="list", items=(node,))

    deep = pytest.raises(UndescribableError, match="32 deep") if depth > 32 else nullcontext()
    with deep:
        restore(node, Shelf().fetch)


def test_a_copy_takes_room_for_gaps_and_for_what_is_shown_twice() -> None:
    gaps, twice = node_of(torch.zeros(4, 6)[:, ::3]), node_of(torch.zeros(1).expand(50))

    assert isinstance(gaps, TensorNode)
    assert isinstance(twice, TensorNode)
    assert (gaps.copy_bytes, twice.copy_bytes) == (88, 400)


def test_a_clone_shares_nothing_and_keeps_strides() -> None:
    value = {"a": [torch.arange(6.0).reshape(2, 3).T], "b": (torch.ones(1), "x")}

    copied = clone(value)
    value["a"][0].zero_()  # type: ignore[union-attr]

    assert copied["a"][0].stride() == (1, 3)
    assert torch.equal(copied["a"][0], torch.arange(6.0).reshape(2, 3).T)
    assert copied["b"][1] == "x"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (torch.zeros(2), True), (torch.zeros(0), False), (None, False), (0, True), (False, True),
        ("", True), (0.5, True), ((), False), ({"a": [None, {"b": 1}]}, True), ([None, ()], False),
    ],
)  # fmt: skip
def test_a_value_with_any_content_beside_the_gpu_is_told_by_the_host(
    value: object, *, told: bool
) -> None:
    assert has_host_part(node_of(value)) is told


def test_a_tensor_on_the_gpu_is_not_told_by_the_host() -> None:
    node = node_of(torch.zeros(2))
    assert isinstance(node, TensorNode)

    assert not has_host_part(node.model_copy(update={"device": "cuda"}))


@pytest.mark.parametrize(
    "text",
    [
        '{"kind":"tensor","dtype":"float32","shape":[-1],"stride":[1]}',
        '{"kind":"tensor","dtype":"float32","shape":[2,3],"stride":[1]}',
        '{"kind":"tensor","dtype":"float32","shape":[],"stride":[1]}',
        '{"kind":"tensor","dtype":"float32","shape":[1],"stride":[562949953421312]}',
        '{"kind":"tensor","dtype":"float32","shape":[1],"stride":[1],"address":-1}',
        '{"kind":"tensor","dtype":"float32","shape":[1],"stride":[1],"address":18446744073709551616}',
        '{"kind":"pickle","data":"x"}',
        '{"kind":"scalar","value":1.5}',
        '{"kind":"list","items":[],"extra":1}',
    ],
)
def test_a_description_outside_the_form_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        NODE.validate_json(text)


def test_a_float_travels_by_its_bits() -> None:
    assert node_of(0.1) == FloatNode(value="0x1.999999999999ap-4")


@given(st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_without_tensors_there_is_nothing_to_replace(value: object) -> None:
    def refuse(node: TensorNode) -> TensorNode:
        raise AssertionError(node)

    assert replaced(node_of(value), refuse) == node_of(value)


def test_every_tensor_is_replaced_and_nothing_else() -> None:
    value = {"a": [torch.zeros(2), 3, (torch.ones(3, dtype=torch.int8), 0.5)], 7: torch.zeros(0)}
    node = node_of(value)

    moved = replaced(node, lambda each: each.model_copy(update={"offset": each.address + 1}))

    assert [each.offset for each in tensors(moved)] == [1, 2, 3]
    assert [each.offset for each in tensors(node)] == [None] * 3  # what was there stays as it is
    back = replaced(moved, lambda each: each.model_copy(update={"offset": None}))
    assert back == node


def test_a_key_stands_in_a_dict_once() -> None:
    item = '["rows", {"kind": "scalar", "value": 1}]'

    with pytest.raises(ValidationError, match="a key occurs twice"):
        NODE.validate_json(f'{{"kind": "dict", "items": [{item}, {item}]}}')


def test_truths_as_keys_are_the_numbers_that_they_equal() -> None:
    node = describe({True: 1.5, False: None}, Shelf().place)

    assert restore(node, lambda _: torch.zeros(1)) == {True: 1.5, False: None}
    assert NODE.validate_json(NODE.dump_json(node)) == node


def test_the_keys_of_a_dict_are_gone_through_as_they_stand_or_sorted() -> None:
    value = {"b": torch.zeros(1), 7: torch.ones(2), "a": torch.ones(3), 3: None}

    def order(*, keys_sorted: bool) -> list[int]:
        seen: list[int] = []

        def place(tensor: torch.Tensor) -> TensorNode:
            seen.append(len(tensor))
            return TensorNode(dtype="float32", shape=tuple(tensor.shape), stride=(1,))

        describe(value, place, keys_sorted=keys_sorted)
        return seen

    assert (order(keys_sorted=False), order(keys_sorted=True)) == ([1, 2, 3], [2, 3, 1])
