"""Tests of the keys by which submissions are repeated."""

import pytest

from bot.domain.errors import UserError
from bot.domain.submission import LONGEST_KEY, key_of, key_reused


@pytest.mark.parametrize("text", ["8e03978e-40d5", '"8e03978e-40d5"'])
def test_a_key_is_the_same_with_and_without_the_quotes_of_its_header(text: str) -> None:
    assert key_of(text) == "8e03978e-40d5"


@pytest.mark.parametrize(
    "text", ["", '""', '"a', 'a"', "a b", "a\\b", "\u00e4", "a" * (LONGEST_KEY + 1), "a\n"]
)
def test_what_is_no_key_is_refused_with_what_to_send(text: str) -> None:
    with pytest.raises(UserError, match="such as a new UUID") as refusal:
        key_of(text)
    assert refusal.value.code == "bad-key"


def test_the_refusal_of_a_reused_key_says_how_long_a_key_is_kept() -> None:
    assert "within 24 h; repeat that submission unchanged" in key_reused("abc").message
