"""Reads task folders from this machine's disk into bundles."""

import os
from collections.abc import Iterator
from pathlib import Path

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import MAX_ENTRIES, MAX_UNPACKED, TASK_FILE, TaskBundle
from bot.domain.tasks.yaml_document import Document, read_document

_SKIPPED = frozenset({"__pycache__", "__MACOSX"})


def examples() -> Path:
    """Return the tasks shipped with Podium: next to the code in a wheel, else in `tasks`."""
    here = Path(__file__).resolve().parent
    packaged = here / "examples"
    found = packaged if packaged.is_dir() else here.parent.parent / "tasks" / "examples"
    return found.relative_to(Path.cwd()) if found.is_relative_to(Path.cwd()) else found


def read_folder(path: Path, root: Path | None = None) -> TaskBundle:
    """Return the bundle of the task in `path`, with the outside files that it names.

    Those must be below `root`, by default the parent of the task's folder. UserError for files
    outside of `root`, and for links.
    """
    folder = path.resolve()
    if not folder.is_dir():
        raise _no_such_task(path)
    task_file = folder / TASK_FILE
    if not task_file.is_file():
        raise UserError(
            "no-such-task", f"{path}: no task.yml in this folder; {_tasks_below(folder)}"
        )
    document = read_document(_read(task_file, MAX_UNPACKED), f"{folder.name}/{TASK_FILE}")
    outside = _outside_files(document, folder, folder.parent if root is None else root.resolve())
    top = Path(os.path.commonpath([folder.parent, *(file.parent for file in outside)]))
    files: dict[str, bytes] = {}
    bytes_left = MAX_UNPACKED
    for file in (*_files(folder), *sorted(outside)):
        content = _read(file, bytes_left)
        files[file.relative_to(top).as_posix()] = content
        bytes_left -= len(content)
    return TaskBundle(files, folder.relative_to(top).as_posix(), folder.name)


def _outside_files(document: Document, folder: Path, root: Path) -> set[Path]:
    """Return the files outside the task's folder that its task.yml names."""
    if not folder.is_relative_to(root):
        words = f"is not below {root}; --root must name a folder that contains the task"
        raise UserError("bad-task", f"{folder}: {words}")
    found: set[Path] = set()
    for path, source in _sources(document):
        file = Path(os.path.normpath(folder / source))
        if file.is_relative_to(folder) or "\0" in source:
            continue
        if not file.is_relative_to(root):
            words = (
                f"{source!r} is outside the task, and outside {root}; publish its competition's "
                "YAML, or name the folder of all sets with --root DIR"
            )
            raise document.refusal(path, words)
        if os.path.isfile(file):  # noqa: PTH113 - False for names that no file can have
            if file.resolve() != file:
                raise document.refusal(path, f"{source!r} is a link; put the file itself there")
            found.add(file)
    return found


def _sources(document: Document) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the sources that task.yml names, as far as it is well-formed."""
    files, templates = document.value.get("files"), document.value.get("templates")
    for i, entry in enumerate(files if isinstance(files, list) else ()):
        if isinstance(entry, dict) and isinstance(source := entry.get("source"), str):
            yield ("files", i), source
    for language, source in templates.items() if isinstance(templates, dict) else ():
        if isinstance(source, str):
            yield ("templates", language), source


def _no_such_task(path: Path) -> UserError:
    if path.exists():
        words = "neither a task's folder nor a file that ends in .zip"
    else:
        words = f"there is no such folder or zip; {_tasks_below(path.parent)}"
    return UserError("no-such-task", f"{path}: {words}")


def _tasks_below(folder: Path) -> str:
    """Return the nearest tasks in words, to help with a typo."""
    found = [str(task.relative_to(folder)) for task in task_folders(folder)]
    return f"the tasks in {folder} are {', '.join(found[:20])}" if found else "name a task's folder"


def task_folders(top: Path) -> tuple[Path, ...]:
    """Return the folders with a task.yml at or below `top`, sorted, at most three levels deep."""
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


def _read(path: Path, bytes_left: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(bytes_left + 1)
    except OSError as error:
        raise UserError("bad-task", f"{path}: cannot be read ({error.strerror})") from error
    if len(content) > bytes_left:
        raise UserError("bad-task", f"{path}: the task has more than {MAX_UNPACKED} bytes")
    return content
