from typing import Literal

from bot.domain.accounts import Token, digest_of, scope_of
from bot.domain.ids import PersonId, TokenId
from tests.doubles.factories import NOON


def test_a_digest_is_the_same_each_time_and_tells_nothing() -> None:
    assert digest_of("podium_x") == digest_of("podium_x") != digest_of("podium_y")
    assert len(digest_of("podium_x")) == 64
    assert "podium" not in digest_of("podium_x")


def test_scopes_go_by_the_words_that_people_choose() -> None:
    words: tuple[Literal["read", "submit", "admin"], ...] = ("read", "submit", "admin")
    for word in words:
        token = Token(TokenId(1), PersonId(1), "x", NOON, None, scope_of(word))
        assert token.scope.word == word
        assert not token.is_worker_token
