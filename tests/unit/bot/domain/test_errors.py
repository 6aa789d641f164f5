"""Tests of refusing names."""

import pytest

from bot.domain.errors import unknown_name


@pytest.mark.parametrize(
    ("name", "valid", "hint"),
    [
        ("sofmax", ["softmax", "sort"], "did you mean softmax?"),
        ("zzz", ["sort", "matmul"], "there are: matmul, sort"),
        ("zzz", [], "there is no board yet"),
    ],
)
def test_a_refused_name_comes_with_the_nearest_or_all(
    name: str, valid: list[str], hint: str
) -> None:
    error = unknown_name("board", name, valid)
    assert error.code == "unknown-board"
    assert error.message == f"no board named {name!r}; {hint}"


def test_a_name_of_a_megabyte_is_not_said_again() -> None:
    refusal = unknown_name("board", "softmax" * 100_000, ["softmax", "matmul"])
    assert len(refusal.message) < 200
    assert "there are: matmul, softmax" in refusal.message
