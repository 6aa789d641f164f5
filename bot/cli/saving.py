"""Writes the files of an evaluation where a person wants them."""

from collections.abc import Iterable
from pathlib import Path

from bot.domain.errors import UserError
from runners.contract.files import EvaluationFile


def save(files: Iterable[tuple[str, EvaluationFile]], folder: Path) -> tuple[Path, ...]:
    """Write each file under its name into the folder, made when new; UserError when it cannot be.

    A file of that name is replaced.
    """
    saved = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, file in files:
            (folder / name).write_bytes(file.content())
            saved.append(folder / name)
    except (OSError, ValueError) as error:
        raise UserError("cannot-save", f"the files cannot be saved in {folder}: {error}") from error
    return tuple(saved)


def told(saved: tuple[Path, ...]) -> str:
    """What was written, in a line."""
    return f"saved {', '.join(map(str, saved))}" if saved else "there are no files to save"
