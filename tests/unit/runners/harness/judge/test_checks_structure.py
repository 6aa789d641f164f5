import pytest
import torch

from runners.harness.judge.checks import difference, ordered_like, sorted_by_key
from runners.harness.protocol.arena import lay_out
from runners.harness.protocol.values import Node, clone


def node_of(value: object) -> Node:
    return lay_out(value).node


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        (torch.zeros(2), torch.zeros(3), "the output has shape [3], [2] is expected"),
        (torch.zeros(2), torch.zeros(2).int(), "has dtype int32, float32 is expected"),
        (torch.zeros(2), [torch.zeros(2)], "the output is a list, a tensor is expected"),
        ((1, torch.zeros(2)), (1, torch.zeros(1)), "the output[1] has shape"),
        ((1, 2), (1, 2, 3), "the output has 3 items, 2 are expected"),
        ({"a": 1}, {"b": 1}, "has the keys ['b'], ['a'] are expected"),
        ({"a": torch.zeros(2)}, {"a": torch.zeros(1)}, "the output['a'] has shape"),
        ({"a": 1, "b": torch.zeros(2)}, {"a": 1, "b": torch.ones(1)}, "the output['b'] has shape"),
        (1.0, torch.zeros(1), "the output is a tensor, a float is expected"),
        (1.0, "1.0", "the output is a str, a float is expected"),
        (1, 2.0, "the output is a float, a int is expected"),
        (1, True, "the output is a bool, a int is expected"),
        ([None], [0], "the output[0] is a int, a NoneType is expected"),
    ],
)
def test_a_difference_is_said_in_words(expected: object, actual: object, words: str) -> None:
    found = difference(node_of(expected), node_of(actual))

    assert found is not None
    assert words in found


@pytest.mark.parametrize(
    "value", [torch.zeros(2), (1, torch.zeros(2)), {"a": [1.5]}, 3, None, [True]]
)
def test_a_structure_does_not_differ_from_itself(value: object) -> None:
    assert difference(node_of(value), node_of(clone(value))) is None


def test_strides_and_numbers_are_no_difference_of_structure() -> None:
    assert difference(node_of(torch.zeros(2, 3)), node_of(torch.zeros(3, 2).T)) is None
    assert difference(node_of(1), node_of(2)) is None


def test_a_structure_is_brought_into_the_order_of_its_keys_and_into_anothers() -> None:
    pattern = node_of({"b": 1, "a": [{"d": 2, "c": 3}], 5: None})
    other = node_of({5: None, "a": [{"c": 30, "d": 20}], "b": 10})

    assert ordered_like(pattern, other) == node_of({"b": 10, "a": [{"d": 20, "c": 30}], 5: None})
    assert sorted_by_key(other) == sorted_by_key(ordered_like(pattern, other))
    assert sorted_by_key(pattern) == node_of({5: None, "a": [{"c": 3, "d": 2}], "b": 1})


def test_a_list_may_stand_for_a_tuple_and_becomes_one() -> None:
    assert ordered_like(node_of([(1, 2), [3]]), node_of(([4, 5], (6,)))) == node_of([(4, 5), [6]])
