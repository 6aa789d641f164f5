"""The driver's exceptions as our families of errors; refusals that both stores share."""

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
"""Whatever a database that is away makes the driver raise.

The internal one is asyncpg's word for a connection that is reused in the moment in which its killed
server says goodbye.
"""


_SCHEMES = frozenset({"postgres", "postgresql"})


def where(dsn: str) -> str:
    """The place `host:port/database` of a URL; never its user or password.

    A password with a sign that has to be escaped in a URL makes something else of what follows it.
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


def reported(error: BaseException) -> str:
    """One line for a person or a log."""
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__


@contextmanager
def translated() -> Iterator[None]:
    """Raises StoreError in place of whatever the driver or the socket raised."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise StoreError(f"the database's disk is full: {reported(error)}") from error
    except asyncpg.QueryCanceledError as error:
        raise StoreError(f"the database took too long: {reported(error)}") from error
    except TimeoutError as error:
        raise StoreError("the database did not answer in time") from error
    except DRIVER_FAILURES as error:
        raise StoreError(f"the database is away or refuses: {reported(error)}") from error


@contextmanager
def reaching(dsn: str) -> Iterator[None]:
    """Raises SetupError when the database cannot be opened at all."""
    try:
        yield
    except ValueError as error:
        # The driver's text may quote a part of the password here.
        raise SetupError(
            f"DATABASE_URL ({where(dsn)}) is no valid URL of a Postgres database; "
            "write postgresql://user:password@host:port/database"
        ) from error
    except DRIVER_FAILURES as error:
        raise SetupError(
            f"no database at {where(dsn)}: {reported(error)}; start it, or correct DATABASE_URL"
        ) from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises SetupError in place of what the file system refused."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        raise SetupError(
            f"cannot write to {path}: {'the disk is full' if full else error.strerror}; "
            f"{'free some space, or ' if full else ''}choose another data folder with --data"
        ) from error


def board_exists(name: str) -> UserError:
    """The refusal of a board name that is taken."""
    return UserError(
        "board-exists",
        f"there is already a board named {name!r}; choose another name, or update that board",
    )


def require_number(made: Iterable[SubmissionId], expected: int | None) -> None:
    """UserError unless so many of a board's submissions are people's; None takes any number."""
    if expected is not None and sum(not is_system_submission(each) for each in made) != expected:
        raise UserError(
            "moved", "somebody submitted meanwhile; nothing was deleted; give the command again"
        )
