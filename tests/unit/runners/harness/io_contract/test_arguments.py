import base64
import math
import zlib
from typing import Any

import pytest
import torch

from runners.contract.io_contract import (
    GIVEN_SEED,
    ContractScalar,
    Fill,
    Literals,
    Role,
    TensorArgument,
)
from runners.contract.verdict import Verdict
from runners.harness.io_contract.arguments import create_arguments, size_of, unwritten
from runners.harness.verdicts import VerdictError

CPU = torch.device("cpu")


def argument(
    name: str = "x",
    shape: tuple[int, ...] = (1000,),
    dtype: str = "float32",
    **fill: Any,  # noqa: ANN401 - any of its fields
) -> TensorArgument:
    return TensorArgument(name=name, dtype=dtype, shape=shape, fill=Fill(**fill))


def made(found: TensorArgument, seed: int = 7) -> torch.Tensor:
    (tensor,) = create_arguments([found], seed, frozenset(), CPU)
    assert isinstance(tensor, torch.Tensor)
    return tensor


def distinct(found: torch.Tensor) -> list[Any]:
    return sorted(set(found.tolist()))


def literal(data: bytes, dtype: str, shape: tuple[int, ...], *, zipped: bool) -> TensorArgument:
    packed = base64.b64encode(zlib.compress(data) if zipped else data).decode()
    literals = Literals(data=packed, zipped=zipped)
    return TensorArgument(name="x", dtype=dtype, shape=shape, literals=literals)


def test_a_deviation_counts_without_a_mean() -> None:
    assert made(argument(std=10.0)).std().item() == pytest.approx(10, rel=0.2)
    assert made(argument(mean=5.0)).mean().item() == pytest.approx(5, rel=0.1)
    assert distinct(made(argument(std=0.0, mean=3.0))) == [3.0]


def test_a_high_of_zero_is_a_high_of_zero() -> None:
    drawn = made(argument(kind="uniform", low=-1.0, high=0.0))
    assert drawn.max().item() <= 0
    assert drawn.min().item() < -0.9
    whole = made(argument(kind="uniform", low=-3.0, high=0.0, dtype="int32"))
    assert distinct(whole) == [-3, -2, -1, 0]


def test_integers_are_drawn_over_the_range_of_their_type() -> None:
    small = made(argument(dtype="int8"))
    assert small.dtype == torch.int8
    assert small.min() < -100
    assert small.max() > 100
    assert made(argument(dtype="int64")).abs().max() <= 1_000_000
    assert sorted(distinct(made(argument(dtype="bool")))) == [False, True]
    assert made(argument(dtype="uint8", kind="uniform")).max() <= 100


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_floats_have_the_type_that_is_asked_for(dtype: str) -> None:
    for kind in ("randn", "uniform", "zeros", "ones", "arange"):
        assert str(made(argument(kind=kind, dtype=dtype)).dtype) == f"torch.{dtype}"


def test_a_row_runs_along_the_last_dimension() -> None:
    row = made(argument(kind="arange", shape=(2, 3), start=1.0, step=0.5))
    assert row.tolist() == [[1.0, 1.5, 2.0]] * 2
    assert made(argument(kind="arange", shape=(3,), dtype="int32", step=2.0)).tolist() == [0, 2, 4]
    assert made(argument(kind="arange", shape=(), start=4.0)).item() == 4


def test_constants() -> None:
    assert distinct(made(argument(kind="full", value=2.5))) == [2.5]
    assert distinct(made(argument(kind="full"))) == [0.0]
    assert made(argument(kind="ones", dtype="bool")).all()


def test_the_first_trial_has_the_given_seed_and_the_others_their_own() -> None:
    one = argument(seed=5)
    wanted = torch.randn(1000, generator=torch.Generator().manual_seed(5))
    assert torch.equal(made(one, GIVEN_SEED), wanted)
    assert torch.equal(made(one, 3), made(one, 3))
    assert not torch.equal(made(one, 3), made(one, 4))
    assert not torch.equal(made(one, 3), wanted)


def test_two_tensors_without_seeds_differ_and_agree_between_contracts() -> None:
    x, y, out = (
        argument("x"),
        argument("y"),
        TensorArgument(name="out", dtype="float32", shape=(3,), role=Role.OUTPUT),
    )
    one, two = create_arguments([x, y], 1, frozenset(), CPU)
    assert not torch.equal(one, two)
    _, again, other = create_arguments([out, argument("a"), argument("b")], 1, frozenset(), CPU)
    assert torch.equal(one, again)
    assert torch.equal(two, other)
    names = frozenset({"x", "y"})
    first, second = create_arguments([x, y], 1, names, CPU), create_arguments([y, x], 1, names, CPU)
    assert torch.equal(first[0], second[1])
    assert torch.equal(first[1], second[0])


@pytest.mark.parametrize("zipped", [False, True])
def test_literal_values_stay_what_they_are(zipped: bool) -> None:  # noqa: FBT001
    values = torch.tensor([[1.0, -2.5], [0.1, 3e38]])
    data = values.numpy().tobytes()
    found = made(literal(data, "float32", (2, 2), zipped=zipped))
    assert torch.equal(found, values)
    assert torch.equal(made(literal(data, "float32", (2, 2), zipped=zipped), 99), values)


def test_literal_values_may_be_of_a_type_that_numpy_lacks() -> None:
    assert made(literal(b"\x80\x3f\x20\xc0", "bfloat16", (2,), zipped=False)).tolist() == [1, -2.5]
    assert made(literal(b"\x01\x00", "bool", (2,), zipped=False)).tolist() == [True, False]
    assert made(literal(b"", "float32", (0, 3), zipped=False)).shape == (0, 3)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (literal(b"1234", "float32", (2,), zipped=False), "takes 8"),
        (literal(b"1234" * 99, "float32", (1,), zipped=True), "takes 4"),
        (TensorArgument(name="x", dtype="float32", literals=Literals(data="?")), "cannot be made"),
        (
            TensorArgument(
                name="x", dtype="float32", shape=(1,), literals=Literals(data="AAAA", zipped=True)
            ),
            "zlib",
        ),
        (argument(dtype="float7"), "no dtype 'float7'"),
        (argument(kind="full", value=300, dtype="uint8"), "cannot be made"),
    ],
)
def test_what_cannot_be_made_is_the_requests_fault(broken: TensorArgument, words: str) -> None:
    with pytest.raises(VerdictError, match=words) as caught:
        made(broken)
    assert caught.value.verdict is Verdict.TASK_ERROR


def test_what_a_kernel_leaves_unwritten_is_never_right() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        assert unwritten((3,), dtype, CPU).isnan().all()
    for dtype in (torch.int64, torch.uint8):
        assert len({int(unwritten((), dtype, CPU)) for _ in range(20)}) > 1
    assert {str(unwritten((2, 2), torch.bool, CPU).tolist()) for _ in range(50)} == {
        *("[[True, False], [True, False]]", "[[False, True], [False, True]]")
    }
    assert math.isnan(
        made(TensorArgument(name="y", dtype="float16", shape=(1,), role=Role.OUTPUT)).item()
    )


def test_scalars_stay_and_take_no_room() -> None:
    scalars = [ContractScalar(name="n", value=3), ContractScalar(name="s", value="up")]
    assert create_arguments(scalars, 1, frozenset(), CPU) == [3, "up"]
    assert size_of([*scalars, argument(shape=(4, 2), dtype="float16")]) == 16
