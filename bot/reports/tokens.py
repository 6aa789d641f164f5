"""The reports of the machines that may judge from elsewhere, and of a person's tokens."""

from collections.abc import Sequence
from datetime import datetime

from bot.domain.accounts import Token
from bot.reports.blocks import Column, Report, Table, Text, Tone

_COLUMNS = (Column("worker"), Column("made"), Column("ends"))


def worker_tokens_report(tokens: Sequence[Token], now: datetime) -> Report:
    """A line for each, those that have expired marked so."""
    if not tokens:
        words = "no machine has one; make one: podium token create --worker NAME"
        return Report("Tokens of workers", (Text(words, Tone.QUIET),))
    rows = tuple((each.label, f"{each.created_at:%Y-%m-%d}", _ends(each, now)) for each in tokens)
    return Report("Tokens of workers", (Table("not revoked", _COLUMNS, rows),))


def personal_tokens_report(tokens: Sequence[Token], now: datetime) -> Report:
    """A line for each token of one person, those that have expired marked so."""
    if not tokens:
        words = "this person has none; make one: podium token create --person NAME"
        return Report("Tokens", (Text(words, Tone.QUIET),))
    columns = (Column("id", numeric=True), Column("for"), Column("may"), *_COLUMNS[1:])
    rows = tuple(
        (str(each.id), each.label, each.may, f"{each.created_at:%Y-%m-%d}", _ends(each, now))
        for each in tokens
    )
    return Report("Tokens", (Table("not revoked", columns, rows),))


def _ends(token: Token, now: datetime) -> str:
    if token.expires_at is None:
        return "never"
    past = ", expired" if token.expires_at <= now else ""
    return f"{token.expires_at:%Y-%m-%d}{past}"
