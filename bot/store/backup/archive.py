"""The file of a backup: a zip with one COPY text per table, and a manifest with checksums.

COPY texts are the same in every Postgres version, and `unzip` opens the file, so a backup can be
read even without Podium.
"""

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from bot.domain.errors import SetupError, UserError
from bot.domain.records import BackupContents

FORMAT: Literal["podium-backup"] = "podium-backup"
VERSION = 1
"""The version of the file's layout; newer ones are refused. Migrations define the tables."""
CHUNK_BYTES = 1 << 20
"""How many bytes are read at once."""
_MANIFEST = "manifest.json"
_MAX_MANIFEST = 16 << 20


class _ManifestModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TableDump(_ManifestModel):
    """One table; `sha256` is of its COPY text."""

    name: str
    columns: tuple[str, ...]
    rows: int
    sha256: str


class AppliedMigration(_ManifestModel):
    """A migration that had been applied to the database."""

    number: int
    name: str
    sha256: str


class Manifest(_ManifestModel):
    """The contents of the file; `sequences` has the last value that each sequence returned."""

    format: Literal["podium-backup"] = FORMAT
    version: Literal[1] = 1
    made_at: datetime
    podium: str
    migrations: tuple[AppliedMigration, ...]
    tables: tuple[TableDump, ...]
    sequences: dict[str, int]

    @property
    def contents(self) -> BackupContents:
        """Return the summary for people."""
        return BackupContents(
            self.made_at, self.podium, {each.name: each.rows for each in self.tables}
        )


class BackupWriter:
    """A backup being written."""

    def __init__(self, file: zipfile.ZipFile, path: Path) -> None:
        self._file = file
        self._path = path

    @contextmanager
    def table(self, name: str) -> Iterator["TableWriter"]:
        """Yield a writer for the COPY text of one table."""
        with self._file.open(_member(name), "w", force_zip64=True) as member:
            yield TableWriter(member, self._path)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, the last entry: a file without it is not a backup."""
        self._file.writestr(_MANIFEST, manifest.model_dump_json(indent=1))


class TableWriter:
    """A table's text being written."""

    def __init__(self, member: IO[bytes], path: Path) -> None:
        self._member = member
        self._path = path
        self._hash = hashlib.sha256()

    async def write(self, chunk: bytes) -> None:
        """Write a chunk; SetupError for the disk's errors, which are not the database's."""
        self._hash.update(chunk)
        with _writing(self._path):
            self._member.write(chunk)

    @property
    def sha256(self) -> str:
        """Return the hash of everything so far."""
        return self._hash.hexdigest()


@contextmanager
def created(path: Path) -> Iterator[BackupWriter]:
    """Yield a new file, readable by its owner only; it gets the name `path` once complete.

    Until then it is `path` with `.partial`; after a kill, the next backup of that name overwrites
    it. UserError when `path` exists; it is never overwritten.
    """
    _require_free(path)
    if not path.parent.is_dir():
        raise UserError("no-such-folder", f"{path.parent}: there is no such folder; create it")
    with _writing(path), _locked(path.with_name(f"{path.name}.partial")) as (partial, stream):
        _require_free(path)  # again: another backup may have finished before this one got the lock
        try:
            stream.truncate()
            with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
                yield BackupWriter(file, path)
            stream.flush()
            os.fsync(stream.fileno())
            partial.rename(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def streamed(stream: IO[bytes]) -> Iterator[BackupWriter]:
    """Yield a backup into an open file, such as a pipe; if it is cut short, it is not a backup."""
    with _writing(Path("-")), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as file:
        yield BackupWriter(file, Path("-"))


def _require_free(path: Path) -> None:
    if path.exists():
        raise UserError("file-exists", f"{path}: the file exists already; name another one")


@contextmanager
def _locked(partial: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Yield the unfinished file, locked for this process; a kill releases it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(partial, flags, 0o600)
    with os.fdopen(descriptor, "r+b") as stream:
        if os.fstat(descriptor).st_uid != os.geteuid():
            words = f"{partial}: another user owns it and could read the backup; name another file"
            raise UserError("file-exists", words)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            words = f"{partial}: another backup is writing it; wait for it, or name another file"
            raise UserError("file-exists", words) from None
        yield partial, stream


def _sync_folder(folder: Path) -> None:
    """Sync the folder: the file's name must survive a power failure, like its bytes."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Raise SetupError for errors of the file system."""
    try:
        yield
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        words = "the disk is full; free some space, or name" if full else f"{error.strerror}; name"
        raise SetupError(f"cannot write {path}: {words} a file elsewhere") from error


@contextmanager
def seekable(source: Path | IO[bytes], folder: Path) -> Iterator[Path | IO[bytes]]:
    """Yield a pipe's data as a nameless file, because a zip's index is at its end."""
    if isinstance(source, Path):
        yield source
        return
    with _writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below
    with file:
        with _writing(folder):
            shutil.copyfileobj(source, file, CHUNK_BYTES)
        yield file


class BackupReader:
    """A backup that was verified as complete."""

    def __init__(self, file: zipfile.ZipFile, manifest: Manifest) -> None:
        self._file = file
        self.manifest = manifest

    def chunks(self, table: str) -> Iterator[bytes]:
        """Yield the COPY text of one table."""
        with self._file.open(_member(table)) as member:
            while chunk := member.read(CHUNK_BYTES):
                yield chunk


@contextmanager
def opened(source: Path | IO[bytes]) -> Iterator[BackupReader]:
    """Yield a backup; UserError unless it is complete and of a version that this code reads."""
    path = source if isinstance(source, Path) else Path("-")
    try:
        with zipfile.ZipFile(source) as file:
            backup = BackupReader(file, _manifest(file))
            for table in backup.manifest.tables:
                _check(backup, table)
            yield backup
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UserError("no-such-file", f"{path}: there is no such file") from error
    except PermissionError as error:
        raise UserError("no-such-file", f"{path}: cannot be read ({error.strerror})") from error
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, KeyError, ValueError) as error:
        raise _broken(f"{path} is not a backup, or it is damaged") from error


def _manifest(file: zipfile.ZipFile) -> Manifest:
    with file.open(_MANIFEST) as member:
        text = member.read(_MAX_MANIFEST)
    found = json.loads(text)
    version = found.get("version") if isinstance(found, dict) else None
    if isinstance(version, int) and version > VERSION:
        raise UserError(
            "new-backup",
            f"the backup has format {version} and this Podium reads up to {VERSION}; "
            "install the Podium that made it, or a newer one",
        )
    try:
        return Manifest.model_validate_json(text)
    except ValidationError as error:
        raise _broken("its manifest is invalid") from error


def _check(backup: BackupReader, table: TableDump) -> None:
    digest = hashlib.sha256()
    for chunk in backup.chunks(table.name):
        digest.update(chunk)
    if digest.hexdigest() != table.sha256:
        raise _broken(f"table {table.name} does not match its checksum")


def _broken(words: str) -> UserError:
    return UserError("bad-backup", f"{words}; take another backup")


def _member(table: str) -> str:
    return f"tables/{table}.copy"
