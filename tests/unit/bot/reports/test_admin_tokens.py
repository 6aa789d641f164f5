from datetime import timedelta

from bot.domain.accounts import Token, TokenScope
from bot.domain.ids import PersonId, TokenId
from bot.reports.admin import personal_tokens_report, worker_tokens_report
from bot.reports.blocks import Table, Text
from tests.doubles.factories import NOON


def token(label: str, days: float | None) -> Token:
    until = None if days is None else NOON + timedelta(days=days)
    return Token(TokenId(1), PersonId(1), label, NOON, None, TokenScope.WORKER, until)


def test_each_token_has_its_end_and_whether_that_is_past() -> None:
    (table,) = worker_tokens_report([token("a", 1), token("b", -1), token("c", None)], NOON).blocks
    assert isinstance(table, Table)
    assert [row[2] for row in table.rows] == ["2026-11-02", "2026-10-31, expired", "never"]


def test_without_tokens_it_says_how_one_is_made() -> None:
    (text,) = worker_tokens_report([], NOON).blocks
    assert isinstance(text, Text)
    assert "podium token create" in text.text


def test_a_persons_tokens_say_what_they_may() -> None:
    own = Token(TokenId(7), PersonId(1), "laptop", NOON, None, TokenScope.PERSON)
    (table,) = personal_tokens_report([own], NOON).blocks
    assert isinstance(table, Table)
    assert table.rows == (("7", "laptop", "submit", "2026-11-01", "never"),)
    (text,) = personal_tokens_report([], NOON).blocks
    assert isinstance(text, Text)
    assert "podium token create --person" in text.text
