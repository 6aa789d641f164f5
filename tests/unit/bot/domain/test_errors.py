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
