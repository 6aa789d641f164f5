"""Tests of refusing names."""

from typing import Annotated

import pytest
from pydantic import BaseModel, StringConstraints, ValidationError

from bot.domain.api.base import GpuName
from bot.domain.errors import fault_words, unknown_name
from runners.contract.task import TASK_NAME_FORM


@pytest.mark.parametrize(
    ("name", "valid", "hint"),
    [
        ("sofmax", ["softmax", "sort"], "did you mean softmax?"),
        ("zzz", ["sort", "matmul"], "available: matmul, sort"),
        ("zzz", [], "no board exists yet"),
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
    assert "available: matmul, softmax" in refusal.message


class _Example(BaseModel):
    gpu: GpuName = "CPU"
    name: Annotated[str, StringConstraints(pattern=TASK_NAME_FORM)] = "sort"
    digest: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] = "0" * 64
    number: int = 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"gpu": "H 100"}, "must be the name of a GPU type, such as H100 or CPU"),
        ({"name": "Sort"}, "must be at most 64 lowercase letters, digits, - and _"),
        ({"digest": "abc"}, "must have the form ^[0-9a-f]{64}$"),
        ({"number": "x"}, "must be a valid integer"),
    ],
)
@pytest.mark.parametrize("context", [True, False])
def test_what_is_wrong_with_a_value_is_told_in_words(
    value: dict[str, str], words: str, *, context: bool
) -> None:
    with pytest.raises(ValidationError) as raised:
        _Example.model_validate(value)
    (fault,) = raised.value.errors(include_context=context)
    assert fault_words(fault).startswith(words)
