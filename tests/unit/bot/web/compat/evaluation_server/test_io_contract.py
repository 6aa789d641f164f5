"""IOContracts: what they may say."""

import base64
import zlib

import pytest
from pydantic import ValidationError

from bot.web.compat.evaluation_server.io_contract import (
    MAX_DATA_BYTES,
    MAX_LITERAL_BYTES,
    Dim,
    IOContract,
    LaunchConfig,
    TensorData,
    TensorInit,
    TensorSpec,
)


def arg(**over: object) -> dict[str, object]:
    tensor = {"shape": [4], "dtype": "float32", "init": {"kind": "randn", "seed": 7}}
    return {"name": "x", "type": "tensor", "tensor_spec": tensor, "role": "inout"} | over


def packed(values: bytes, **over: object) -> dict[str, object]:
    return {"data_b64": base64.b64encode(values).decode(), "dtype": "int8", **over}


def test_arguments_keep_their_order_and_pass_over_unknown_keys() -> None:
    contract = IOContract.model_validate(
        {
            "args": [
                arg(note="passed over"),
                {"name": "n", "type": "int", "value": 4, "is_meta": True},
                {"name": "scale", "type": "float", "value": 2},
            ],
            "launch": {"grid": {"x": 2}, "num_warps": 8},
        }
    )
    assert [each.name for each in contract.args] == ["x", "n", "scale"]
    assert contract.launch == LaunchConfig(grid=Dim(x=2, y=1, z=1), num_warps=8)


def test_a_flag_stays_a_flag_and_a_number_a_number() -> None:
    values = (True, 3, 2.5, "mean")
    kinds = ("bool", "int", "float", "str")
    args = [
        {"name": kind, "type": kind, "value": value}
        for kind, value in zip(kinds, values, strict=True)
    ]
    found = [each.value for each in IOContract.model_validate({"args": args}).args]
    assert found == list(values)
    assert [type(value) for value in found] == [bool, int, float, str]


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"type": "matrix"}, "'tensor', 'int'"),
        ({"tensor_spec": None}, "needs a tensor_spec"),
        ({"role": "result"}, "'input', 'output'"),
        ({"tensor_spec": {"shape": [0]}}, "greater than or equal to 1"),
        ({"tensor_spec": {"shape": [2**20, 2**20]}}, "at most"),
        ({"tensor_spec": {"shape": [4], "dtype": "float8"}}, "'float64'"),
        ({"type": "int", "value": 2.5}, "is no int"),
        ({"type": "int", "value": True}, "is no int"),
        ({"type": "int"}, "needs a value"),
        ({"type": "float", "value": float("nan")}, "finite"),
        ({"type": "float", "value": 10**400}, "more than 64 bits"),
        ({"type": "int", "value": 2**64}, "more than 64 bits"),
        ({"tensor_spec": {"init": {"kind": "full", "fill_value": -(2**64)}}}, "more than 64 bits"),
        ({"name": "n" * 1001}, "at most 1000 characters"),
    ],
)
def test_an_argument_that_cannot_be_meant_is_refused(over: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        IOContract.model_validate({"args": [arg(**over)]})


def test_no_two_arguments_have_one_name() -> None:
    with pytest.raises(ValidationError, match="two arguments are named 'x'"):
        IOContract.model_validate({"args": [arg(), arg()]})


def test_the_bounds_of_uniform_stay_what_they_are_also_at_0() -> None:
    init = TensorInit(kind="uniform", low=-1, high=0)
    assert (init.low, init.high) == (-1, 0)


def test_a_spread_is_kept_without_a_mean() -> None:
    assert TensorInit(std=10) == TensorInit(kind="randn", mean=None, std=10)


@pytest.mark.parametrize(
    "init",
    [
        {"kind": "normal"},
        {"kind": "arange", "step": 0},
        {"kind": "uniform", "low": 2, "high": 1},
        {"kind": "randn", "std": -1},
    ],
)
def test_a_way_to_fill_a_tensor_that_does_not_exist_is_refused(init: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TensorInit.model_validate(init)


def test_literal_data_is_unpacked() -> None:
    plain = TensorData.model_validate(packed(b"\1\2\3\4", shape=[2, 2]))
    squeezed = packed(zlib.compress(b"\1\2\3\4"), shape=[4], compress="zlib")
    assert plain.raw() == TensorData.model_validate(squeezed).raw() == b"\1\2\3\4"


def test_literal_data_may_be_bfloat16() -> None:
    spec = TensorSpec.model_validate(
        {"data": packed(b"\x80\x3f\0\x40", dtype="bfloat16", shape=[2])}
    )
    assert spec.data is not None
    assert spec.data.raw() == b"\x80\x3f\0\x40"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed(b"123", shape=[4]), "3 bytes of data"),
        ({"data_b64": "!!", "shape": [1]}, "not base64"),
        (packed(b"1234", shape=[4], compress="zlib"), "not packed by zlib"),
        (packed(zlib.compress(b"1234")[:-2], shape=[4], compress="zlib"), "is incomplete"),
        (packed(b"1234", shape=[4], compress="lz4"), "'none' or 'zlib'"),
    ],
)
def test_data_that_does_not_fill_its_shape_is_refused(data: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        IOContract.model_validate({"args": [arg(tensor_spec={"data": data})]})


@pytest.mark.parametrize("size", [1, MAX_DATA_BYTES + 1])
def test_a_bomb_is_not_unpacked(size: int) -> None:
    bomb = packed(zlib.compress(bytes(MAX_DATA_BYTES + 1)), shape=[size], compress="zlib")
    with pytest.raises(ValidationError, match=r"tensor 'x': .* (more than 1|at most 16,777,216)"):
        IOContract.model_validate({"args": [arg(tensor_spec={"data": bomb})]})


def test_many_bombs_are_refused_before_the_first_is_unpacked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request of 2 MB had a hundred of them, and kept the door busy for 40 s."""
    monkeypatch.setattr(TensorData, "raw", None)
    half = packed(b"", shape=[MAX_LITERAL_BYTES // 2], compress="zlib")
    args = [arg(name=f"x{number}", tensor_spec={"data": half}) for number in range(3)]
    with pytest.raises(ValidationError, match="together"):
        IOContract.model_validate({"args": args})


@pytest.mark.parametrize(
    "launch", [{"block": {"x": 512, "y": 4}}, {"num_warps": 3}, {"grid": {"x": 0}}]
)
def test_a_launch_that_no_gpu_takes_is_refused(launch: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LaunchConfig.model_validate(launch)
