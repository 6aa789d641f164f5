"""The folder `postgres` of a data folder: who owns it, and where the server's files are."""

import fcntl
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.domain.errors import SetupError
from bot.store.embedded.binaries import Account
from bot.store.embedded.server import new_password
from bot.store.errors import writing

SHARED_HOMES = Path("/var/lib/podium")
"""Where the server's files are when its account cannot enter the data folder."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The database's part of a data folder."""

    path: Path

    @property
    def _lock(self) -> Path:
        return self.path / "owner.lock"

    @property
    def _address(self) -> Path:
        return self.path / "address.json"

    @contextmanager
    def owned(self) -> Iterator[bool]:
        """Yield whether this process owns the folder; the kernel releases a dead owner's lock."""
        with writing(self.path):
            lock = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            with writing(self.path):
                os.ftruncate(lock, 0)
                os.pwrite(lock, str(os.getpid()).encode(), 0)
            yield True
        finally:
            os.close(lock)

    @contextmanager
    def visited(self) -> Iterator[bool]:
        """Yield whether this process may use the owner's server, which then keeps running."""
        with self._guests(fcntl.LOCK_SH) as admitted:
            yield admitted

    @contextmanager
    def closed(self) -> Iterator[bool]:
        """Yield whether no process uses the owner's server; meanwhile none may join."""
        with self._guests(fcntl.LOCK_EX) as closed:
            yield closed

    @contextmanager
    def _guests(self, kind: int) -> Iterator[bool]:
        with writing(self.path):
            lock = os.open(self.path / "guests.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)

    def owner(self) -> str:
        """Return the owner's process id, as text."""
        return self._lock.read_text().strip() or "of an unknown number"

    def address(self) -> str | None:
        """Return the running server's URL, as written by its owner."""
        try:
            return str(json.loads(self._address.read_text())["dsn"])
        except (OSError, ValueError, KeyError):
            return None

    def publish_address(self, dsn: str) -> None:
        """Tell this user's other processes where the server is."""
        self._write(self._address, json.dumps({"dsn": dsn}))

    def withdraw_address(self) -> None:
        """Remove the address."""
        self._address.unlink(missing_ok=True)

    def password(self) -> str:
        """Return the server's password, created on the first call."""
        return self._kept("password", new_password)

    def home(self, account: Account) -> Path:
        """Return where the server's own files are: here, or in a place that its account may enter.

        The first choice is kept, so that a changed permission never hides the data.
        """
        elsewhere = (self.path / "location").exists()
        if not elsewhere and account.can_enter(self.path):
            return self.path
        if not elsewhere and (self.path / "data").exists():
            raise SetupError(
                f"the account of the database can no longer enter {self.path}; "
                "let others pass its parent folders again (chmod o+x), or move it"
            )
        home = Path(self._kept("location", lambda: str(SHARED_HOMES / secrets.token_hex(8))))
        with writing(home):
            SHARED_HOMES.mkdir(mode=0o711, parents=True, exist_ok=True)
            home.mkdir(mode=0o711, exist_ok=True)
        return home

    def _kept(self, name: str, make: Callable[[], str]) -> str:
        file = self.path / name
        if not file.exists():
            self._write(file, make())
        return file.read_text().strip()

    def _write(self, file: Path, text: str) -> None:
        """Write a file for this user only, completely or not at all."""
        partial = file.with_name(file.name + ".partial")
        with writing(self.path):
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                stream.write(text + "\n")
                stream.flush()
                os.fsync(stream.fileno())
            partial.rename(file)


def open_folder(data_dir: Path) -> Folder:
    """Return the folder for the database, created if missing."""
    path = data_dir.expanduser().resolve() / "postgres"
    with writing(path):
        path.mkdir(mode=0o711, parents=True, exist_ok=True)
    return Folder(path)
