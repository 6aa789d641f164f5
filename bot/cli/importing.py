"""The problems of a KernelBench checkout, found on disk."""

from collections.abc import Collection
from pathlib import Path

from bot.domain.errors import UserError
from bot.domain.kernelbench import is_problem

_DEPTHS = ("", "*/", "*/*/")
"""A level's own folder, the folder of the levels, and the checkout that holds it."""


def read_problems(place: Path, levels: Collection[int]) -> dict[str, str]:
    """The sources by `levelN/file.py`; all levels where none is named, UserError for no problem."""
    place = place.resolve()
    files = {file for depth in _DEPTHS for file in place.glob(f"{depth}*.py")}
    wanted = {f"level{level}" for level in levels}
    found = sorted(
        file
        for file in files
        if is_problem(file.as_posix()) and (not wanted or file.parent.name in wanted)
    )
    if not found:
        raise UserError(
            "no-problems",
            f"{place}: there is no problem such as level1/1_Name.py; give a checkout of "
            "KernelBench, or one of its level folders",
        )
    return {f"{file.parent.name}/{file.name}": _text(file) for file in found}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError("bad-problem", f"{file}: this is not UTF-8 text") from error
    except OSError as error:
        raise UserError("bad-problem", f"{file}: cannot be read ({error.strerror})") from error
