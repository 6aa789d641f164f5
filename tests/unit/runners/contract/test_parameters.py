"""The parameters of a kernel: which tensor or number each one is, and the bytes of the numbers."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.contract.formula import FormulaError, parse_formula
from runners.contract.parameters import (
    BufferArgument,
    Scalar,
    ScalarType,
    as_integer,
    bytes_of,
    parse_parameter,
)

ARGS = {"size": 7, "big": 1 << 40, "scale": 0.5, "flag": True}


def scalar(text: str) -> tuple[ScalarType, bytes]:
    found = parse_parameter(text)
    assert isinstance(found, Scalar)
    return found.pack(ARGS)


def test_tensors_are_named_by_their_place() -> None:
    assert parse_parameter("in0") == BufferArgument(kind="in", index=0)
    assert parse_parameter(" out12 ") == BufferArgument(kind="out", index=12)


@pytest.mark.parametrize(
    ("text", "kind", "data"),
    [
        ("size", "int", struct.pack("<i", 7)),
        ("size + 1", "int", struct.pack("<i", 8)),
        ("1/size", "float", struct.pack("<f", 1 / 7)),
        ("scale", "float", struct.pack("<f", 0.5)),
        ("flag", "bool", b"\1"),
        ("int size", "int", struct.pack("<i", 7)),
        ("int size / 7", "int", struct.pack("<i", 1)),
        ("int -size", "int", struct.pack("<i", -7)),
        ("uint 2**32 - 1", "uint", b"\xff" * 4),
        ("int64 big", "int64", struct.pack("<q", 1 << 40)),
        ("uint64 2**64 - 1", "uint64", b"\xff" * 8),
        ("float size", "float", struct.pack("<f", 7.0)),
        ("double 1.0/size", "double", struct.pack("<d", 1 / 7)),
    ],
)
def test_numbers_have_a_type_and_their_bytes(text: str, kind: str, data: bytes) -> None:
    assert scalar(text) == (kind, data)
    assert bytes_of(kind) == len(data)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("big", "'big' is 1099511627776, too large for int; name another type before it"),
        ("uint 0 - 1", "too large for uint"),
        ("int scale", "'scale' is 0.5, not a whole number"),
        ("float 10**29 * 10**9", "above"),
        ("other", "'other' is no argument of this case"),
    ],
)
def test_a_number_that_its_type_cannot_hold_is_refused(text: str, words: str) -> None:
    with pytest.raises(FormulaError, match=words):
        scalar(text)


@pytest.mark.parametrize("text", ["", "in0 + 1 x", "short 5", "__import__('os')", "*size"])
def test_what_is_no_parameter_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(FormulaError, match="neither in0, in1"):
        parse_parameter(text)


def test_a_pointer_has_eight_bytes() -> None:
    assert bytes_of("pointer") == 8


@given(st.integers(min_value=-(1 << 63), max_value=(1 << 63) - 1))
def test_every_integer_of_64_bits_arrives_exactly(number: int) -> None:
    kind, data = Scalar(parse_formula("n"), ScalarType.INT64).pack({"n": number})
    assert (kind, struct.unpack("<q", data)) == (ScalarType.INT64, (number,))


def test_a_number_with_a_fraction_is_not_whole() -> None:
    assert as_integer(4.0, "x") == 4
    with pytest.raises(FormulaError, match="not a whole number"):
        as_integer(4.5, "x")
