"""Task folders on this machine's disk, read into bundles."""

import re
from pathlib import Path

from bot.domain.archive import MAX_ENTRIES, MAX_UNPACKED
from bot.domain.errors import UserError
from bot.domain.task_bundle import TASK_FILE, TaskBundle

_FROM_SET = re.compile(rb"\.\./([A-Za-z0-9_][A-Za-z0-9_.+-]*)")
_SKIPPED = frozenset({"__pycache__", "__MACOSX"})


def read_folder(path: Path) -> TaskBundle:
    """The bundle of the task in `path`, with those files of its set's folder that it names."""
    folder = path.resolve()
    if not folder.is_dir():
        raise _no_task(path)
    task_file = folder / TASK_FILE
    if not task_file.is_file():
        raise UserError(
            "no-such-task", f"{path}: no task.yml in this folder; {_tasks_below(folder)}"
        )
    files: dict[str, bytes] = {}
    room = MAX_UNPACKED
    for file in _files(folder):
        content = _read(file, room)
        files[f"{folder.name}/{file.relative_to(folder).as_posix()}"] = content
        room -= len(content)
    for name in sorted({found.decode() for found in _FROM_SET.findall(_read(task_file, room))}):
        shared = folder.parent / name
        if shared.is_file() and not shared.is_symlink():
            files[name] = _read(shared, room)
            room -= len(files[name])
    return TaskBundle(files, folder.name)


def _no_task(path: Path) -> UserError:
    if path.exists():
        words = "neither a task's folder nor a file that ends in .zip"
    else:
        words = f"there is no such folder or zip; {_tasks_below(path.parent)}"
    return UserError("no-such-task", f"{path}: {words}")


def _tasks_below(folder: Path) -> str:
    """Where there is a task near by, so that a slip of the pen can be mended."""
    found = [str(task.relative_to(folder)) for task in task_folders(folder)]
    return f"in {folder} lie the tasks {', '.join(found[:20])}" if found else "name a task's folder"


def task_folders(top: Path) -> tuple[Path, ...]:
    """The folders with a task.yml at or below `top`, sorted, at most three deep."""
    found = (file.parent for depth in ("", "*/", "*/*/") for file in top.glob(depth + TASK_FILE))
    return tuple(sorted(found))


def _files(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part in _SKIPPED or part.startswith(".") for part in parts):
            continue
        if path.is_symlink():
            raise UserError("bad-task", f"{path}: a link; put the file itself into the task")
        if path.is_file():
            found.append(path)
        if len(found) > MAX_ENTRIES:
            raise UserError("bad-task", f"{folder}: more than {MAX_ENTRIES} files; is it a task?")
    return found


def _read(path: Path, room: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(room + 1)
    except OSError as error:
        raise UserError("bad-task", f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > room:
        raise UserError("bad-task", f"{path}: the task has more than {MAX_UNPACKED} bytes")
    return content
