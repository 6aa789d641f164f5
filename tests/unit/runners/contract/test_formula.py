"""Formulas are arithmetic over the arguments of a case, and nothing else."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.contract.formula import MAX_NODES, FormulaError, parse_formula


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2*m*n", 24.0),
        ("m + n // 2", 5.0),
        ("-m + 10", 7.0),
        ("m**2 / 2", 4.5),
        ("min(m, n) - max(1, n)", -1.0),
        ("7", 7.0),
        ("2**0.5", 2**0.5),
    ],
)
def test_a_formula_gives_the_arithmetic_value(text: str, expected: float) -> None:
    assert parse_formula(text).value({"m": 3, "n": 4}) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "m.real",
        "m if n else 1",
        "[m]",
        "m < n",
        "abs(m)",
        "min(m, key=n)",
        "min()",
        "(lambda: 1)()",
        "'text'",
        "True",
        "m %",
        "",
        "m % n",
        "1j",
        "m" * 401,
        "+".join(["m"] * MAX_NODES),
        "(" * 150 + "m" + ")" * 150 + "!",
    ],
)
def test_what_is_not_arithmetic_is_refused(text: str) -> None:
    with pytest.raises(FormulaError):
        parse_formula(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("m / 0", "divides by zero"),
        ("2**65", "exponent"),
        ("2**-1", "exponent"),
        ("(-8)**0.5", "negative"),
        ("10**31", "above"),
        ("1e30 * 10", "above"),
        ("1e999 - 1e999", "above"),
        ("k", "no argument"),
        ("shape", "not a number"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_the_reason(text: str, word: str) -> None:
    with pytest.raises(FormulaError, match=word):
        parse_formula(text).value({"m": 3, "shape": (1, 2)})


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.sampled_from(["+", "-", "*", "/", "//"]))
def test_operators_mean_what_python_means(a: int, b: int, sign: str) -> None:
    python = {"+": a + b, "-": a - b, "*": a * b, "/": a / b, "//": a // b}[sign]
    assert parse_formula(f"a {sign} b").value({"a": a, "b": b}) == float(python)


@given(st.text(alphabet="mn0123456789+-*/() .,eminax", max_size=60))
def test_any_text_is_a_number_or_a_formula_error(text: str) -> None:
    with contextlib.suppress(FormulaError):
        assert isinstance(parse_formula(text).value({"m": 3, "n": 5}), float)
