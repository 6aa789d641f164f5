from collections.abc import Callable
from typing import Any

import pytest

from runners.contract.io_contract import Argument, ContractScalar, Role, TensorArgument
from runners.harness.build.kernel_calls import Match, match_arguments
from runners.languages import InvalidSubmissionError

X, Y = (TensorArgument(name=name, dtype="float32") for name in "xy")
OUT = TensorArgument(name="out", dtype="float32", role=Role.OUTPUT)
N, BLOCK = ContractScalar(name="n", value=3), ContractScalar(name="BLOCK", value=64, meta=True)


def add(x: object, y: object) -> None: ...
def swapped(y: object, x: object) -> None: ...
def unlike(a: object, b: object) -> None: ...
def into(x: object, y: object, out: object) -> None: ...
def more(x: object, y: object, scale: object = 1) -> None: ...
def every(*args: object) -> None: ...
def alone(x: object) -> None: ...


@pytest.mark.parametrize(
    ("function", "arguments", "match"),
    [
        (add, [X, Y], ((), {"x": 0, "y": 1})),
        (add, [X, Y, OUT], ((), {"x": 0, "y": 1})),
        (swapped, [X, Y], ((), {"y": 1, "x": 0})),
        (into, [X, Y, OUT], ((), {"x": 0, "y": 1, "out": 2})),
        (more, [X, Y], ((), {"x": 0, "y": 1})),
        (unlike, [X, Y], ((0, 1), {})),
        (unlike, [X, Y, OUT], ((0, 1), {})),
        (unlike, [OUT, X, Y, BLOCK], ((1, 2), {})),
        (more, [X, Y, N], ((0, 1, 2), {})),
        (every, [X, OUT], ((0, 1), {})),
        (max, [X, Y], ((0, 1), {})),
    ],
)
def test_a_function_gets_what_its_signature_names(
    function: Callable[..., Any], arguments: list[Argument], match: Match
) -> None:
    assert match_arguments(function, arguments) == match


def test_what_fits_in_no_way_is_refused_with_both_lists() -> None:
    with pytest.raises(InvalidSubmissionError, match=r"`alone\(x.*: x, y, n"):
        match_arguments(alone, [X, Y, N])
