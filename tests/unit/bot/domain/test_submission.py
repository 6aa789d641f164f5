"""Tests of what a door hands over."""

from typing import Any

import pytest

from runners.contract.task import Mode
from tests.doubles.factories import make_submission


def test_a_submission_without_a_key_is_like_no_other() -> None:
    assert make_submission().idempotency_key is None


def test_the_same_submission_has_the_same_digest() -> None:
    assert make_submission(key="k").idempotency_key == make_submission(key="k").idempotency_key


@pytest.mark.parametrize(
    "change",
    [
        {"file_name": "other.py"}, {"content": b"other"}, {"mode": Mode.TEST},
        {"board": None}, {"gpus": ("H100",)},
    ],
)  # fmt: skip
def test_another_submission_has_another_digest(change: dict[str, Any]) -> None:
    first, other = (
        make_submission(key="k").idempotency_key,
        make_submission(key="k", **change).idempotency_key,
    )
    assert first is not None
    assert other is not None
    assert (first.key, first.digest == other.digest) == (other.key, False)
