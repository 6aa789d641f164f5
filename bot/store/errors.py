"""Converts the driver's exceptions to Podium's errors; defines errors that both stores raise."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import asyncpg

from bot.domain.errors import SetupError, StoreError, UserError
from bot.domain.ids import SubmissionId, is_system_submission

DRIVER_FAILURES = (
    asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError,
)  # fmt: skip
"""What the driver raises when a database is unavailable.

The internal error occurs when a connection is reused just as its killed server disconnects.
"""


_SCHEMES = frozenset({"postgres", "postgresql"})


def where(dsn: str) -> str:
    """Return `host:port/database` of a URL, never its user or password.

    An unescaped special character in a password changes the meaning of what follows it.
    """
    unreadable = "the address in DATABASE_URL, which cannot be read as a URL"
    try:
        parts = urlsplit(dsn)
        options = parse_qs(parts.query)
        host = parts.hostname or options.get("host", ["localhost"])[0]
        port = parts.port or int(options.get("port", ["5432"])[0])
    except ValueError:
        return unreadable
    if parts.scheme not in _SCHEMES or "@" in parts.path + parts.query + parts.fragment:
        return unreadable
    return f"{host}:{port}/{parts.path.lstrip('/') or 'postgres'}"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if there is none."""
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__


@contextmanager
def translated() -> Iterator[None]:
    """Raise StoreError for errors of the driver or the socket."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise StoreError(f"the database's disk is full: {first_line(error)}") from error
    except asyncpg.QueryCanceledError as error:
        raise StoreError(f"the database took too long: {first_line(error)}") from error
    except TimeoutError as error:
        raise StoreError("the database did not answer in time") from error
    except DRIVER_FAILURES as error:
        raise StoreError(f"the database is unavailable or refused: {first_line(error)}") from error


@contextmanager
def reaching(dsn: str) -> Iterator[None]:
    """Raise SetupError when the database cannot be opened at all."""
    try:
        yield
    except ValueError as error:
        # Here the driver's message may quote a part of the password.
        raise SetupError(
            f"DATABASE_URL ({where(dsn)}) is not a valid URL of a Postgres database; "
            "write postgresql://user:password@host:port/database"
        ) from error
    except DRIVER_FAILURES as error:
        raise SetupError(
            f"no database at {where(dsn)}: {first_line(error)}; start it, or correct DATABASE_URL"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise SetupError for errors of the file system."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise SetupError(
            f"cannot write to {path}: {'the disk is full' if full else error.strerror}; "
            f"{'free some space, or ' if full else ''}choose another data folder with --data"
        ) from error


def board_exists(name: str) -> UserError:
    """Return the error for a board name that exists already."""
    return UserError(
        "board-exists",
        f"there is already a board named {name!r}; choose another name, or update that board",
    )


def competition_exists(name: str) -> UserError:
    """Return the error for a competition name that exists already."""
    return UserError(
        "competition-exists",
        f"there is already a competition named {name!r}; choose another name, or change that one "
        "by publishing it again",
    )


def competition_gone(name: str) -> UserError:
    """Return the error for a change of a competition that was deleted meanwhile."""
    return UserError("unknown-competition", f"competition {name!r} was deleted in the meantime")


def require_number(submissions: Iterable[SubmissionId], expected: int | None) -> None:
    """Raise UserError unless people made `expected` of the submissions; None accepts any number."""
    if (
        expected is not None
        and sum(not is_system_submission(each) for each in submissions) != expected
    ):
        raise UserError(
            "moved",
            "a submission arrived in the meantime; nothing was deleted; run the command again",
        )
