"""The driver's exceptions become the store's, and passwords stay secret."""

import errno
from pathlib import Path

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.errors import SetupError, StoreError
from bot.store.errors import first_line, reaching, translated, where, writing


@pytest.mark.parametrize(
    ("dsn", "place"),
    [
        ("postgresql://ada:secret@db.example:6543/scores", "db.example:6543/scores"),
        ("postgresql://ada:secret@db.example", "db.example:5432/postgres"),
        ("postgresql://a:secret@/scores?host=%2Frun%2Fpg&port=7", "/run/pg:7/scores"),
    ],
)
def test_a_database_is_named_by_its_place(dsn: str, place: str) -> None:
    assert where(dsn) == place


@given(st.text("abc/:@?#[]%123", min_size=8, max_size=12))
def test_no_spelling_of_a_password_reaches_the_message_of_a_readable_url(password: str) -> None:
    assert where(f"postgresql://ada:{password.encode().hex()}@h/x") == "h:5432/x"


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (asyncpg.DiskFullError("no space"), "disk is full"),
        (asyncpg.QueryCanceledError("statement timeout"), "took too long"),
        (TimeoutError(), "did not answer in time"),
        (ConnectionRefusedError("refused"), "unavailable or refused: refused"),
        (asyncpg.InterfaceError("closed"), "unavailable or refused: closed"),
        (asyncpg.InternalClientError("cannot switch"), "unavailable or refused: cannot switch"),
        (asyncpg.ForeignKeyViolationError("no such person"), "no such person"),
    ],
)
def test_each_failure_is_a_store_error_that_keeps_its_cause(
    raised: BaseException, words: str
) -> None:
    with pytest.raises(StoreError, match=words) as failure, translated():
        raise raised
    assert failure.value.__cause__ is raised


def test_other_exceptions_pass_unchanged() -> None:
    with pytest.raises(KeyError), translated():
        raise KeyError("a bug")


@pytest.mark.parametrize(
    "dsn",
    [
        "ada:4711@h/x", "4711", "file:///4711", "postgresql://ada:4711/y@h/x",
        "postgresql://ada:4711?y@h/x", "postgresql://ada:4711#y@h/x", "postgresql://ada:47:11@h:p/x",
    ],
)  # fmt: skip
def test_of_what_is_no_url_nothing_is_shown_for_it_may_be_the_password(dsn: str) -> None:
    assert "4711" not in where(dsn)


def test_an_unreadable_url_is_refused_without_quoting_it() -> None:
    with pytest.raises(SetupError, match="DATABASE_URL") as failure, reaching("mysql://a:pw9@h/x"):
        raise ValueError("pw9 is not a number")
    assert "pw9" not in str(failure.value)


def test_a_failure_is_reported_in_one_line() -> None:
    assert first_line(OSError("first\nsecond")) == "first"
    assert first_line(TimeoutError()) == "TimeoutError"


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full; free some space, or choose another data folder"),
        (errno.EACCES, "no entry; choose another data folder with --data"),
    ],
)
def test_what_a_disk_refuses_is_a_setup_error(number: int, words: str) -> None:
    with pytest.raises(SetupError, match=f"cannot write to data: {words}"), writing(Path("data")):
        raise OSError(number, "no entry")
