"""Files on a command line: submissions, tasks, KernelBench problems, and files to save."""

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import CommandLine
from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TASK_FILE, TaskBundle
from bot.domain.tasks.competition import (
    CompetitionDefinition,
    CompetitionEntry,
    parse_competition,
    read_competition,
    write_competition,
)
from bot.domain.tasks.grading import NO_PROGRAM, Grading
from bot.domain.tasks.scaffold import is_problem
from bot.domain.tasks.task_file import read_task
from bot.domain.tasks.yaml_document import MAX_BYTES
from runners.contract.files import EvaluationFile
from runners.contract.task import Grader, TaskDefinition

Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Folder from which tasks may include files (default: the folder of the "
        "competition YAML, or the parent of the task folder)",
    ),
]
STREAM = Path("-")
"""The path that means stdin or stdout."""
_READ_AT_MOST = 32 << 20
"""The most bytes that are read: more than a submission may have, so that too many are noticed."""
_COMPETITION_SUFFIXES = frozenset({".yaml", ".yml"})

_DEPTHS = ("", "*/", "*/*/")
"""Where problems are below a level's folder, the folder of all levels, and the whole checkout."""


def read_submission(path: Path) -> bytes:
    """Return a submission's bytes, at most `_READ_AT_MOST`; UserError if it is unreadable."""
    if path == STREAM:
        return sys.stdin.buffer.read(_READ_AT_MOST)
    return _read(path, _READ_AT_MOST)


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(max_bytes)
    except FileNotFoundError:
        raise UserError("no-such-file", f"{path}: there is no such file; check its path") from None
    except IsADirectoryError:
        raise UserError("no-such-file", f"{path}: is a folder; name a file in it") from None
    except OSError as error:
        raise UserError("no-such-file", f"{path}: cannot be read ({error.strerror})") from error


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """A parsed task; `problem` is its entry in its competition."""

    path: Path
    bundle: TaskBundle
    task: TaskDefinition
    problem: CompetitionEntry | None = None
    grading: Grading = NO_PROGRAM
    competition: CompetitionDefinition | None = None
    strict: bool = True
    """False when something in its task.yml was ignored with a warning."""

    @property
    def gpus(self) -> tuple[str, ...]:
        """Return the GPU types that its competition names."""
        return () if self.problem is None else self.problem.gpus


def load_tasks(
    line: CommandLine,
    paths: Sequence[Path],
    root: Path | None = None,
    grader: Grader | None = None,
) -> tuple[LoadedTask, ...]:
    """Return every task of these paths, all read before the first one is used.

    A task may use files below `root`; by default below the folder of its competition's YAML, or,
    without one, below its own parent folder. `grader` overrides the one in task.yml.
    """
    return tuple(loaded for path in paths for loaded in _load(line, path, root, grader))


def _load(
    line: CommandLine, path: Path, root: Path | None, grader: Grader | None
) -> Iterator[LoadedTask]:
    if path.name == TASK_FILE:
        path = path.parent
    if path.suffix in _COMPETITION_SUFFIXES and path.is_file():
        yield from _load_competition(line, path, root or path.parent, grader)
        return
    for folder in line.installation.task_folders(path) or (path,):
        bundle = line.installation.read_task(folder, root)
        parsed = read_task(bundle, grader=grader)
        yield LoadedTask(folder, bundle, parsed.task, grading=parsed.grading)


def _load_competition(
    line: CommandLine, file: Path, root: Path, grader: Grader | None
) -> Iterator[LoadedTask]:
    """Yield the tasks of a competition; unknown keys are ignored with a warning."""
    competition = parse_competition(_read(file, MAX_BYTES + 1), str(file))
    _warn(line, competition.warnings)
    for problem in competition.problems:
        folder = file.parent / problem.directory
        bundle = line.installation.read_task(folder, root)
        parsed = read_task(bundle, strict=False, grader=grader)
        _warn(line, parsed.warnings)
        strict = not parsed.warnings
        yield LoadedTask(
            folder, bundle, parsed.task, problem, parsed.grading, competition, strict=strict
        )


def pack_competition(line: CommandLine, file: Path, root: Path | None) -> bytes:
    """Return a competition and its tasks as one zip; UserError if a server would refuse it."""
    loaded = load_tasks(line, (file,), root)
    definition = loaded[0].competition
    if definition is None:
        raise UserError("usage", f"{file}: name a task's folder, or a competition's YAML")
    packed = write_competition(definition, [each.bundle for each in loaded])
    read_competition(packed)
    return packed


def _warn(line: CommandLine, warnings: Sequence[str]) -> None:
    for warning in warnings:
        line.say(f"warning: {warning}")


def read_problems(path: Path, levels: Collection[int]) -> dict[str, str]:
    """Return the sources of problems by `levelN/file.py`; UserError if there is no problem.

    Without `levels`, those of all levels.
    """
    path = path.resolve()
    files = {file for depth in _DEPTHS for file in path.glob(f"{depth}*.py")}
    wanted = {f"level{level}" for level in levels}
    found = sorted(
        file
        for file in files
        if is_problem(file.as_posix()) and (not wanted or file.parent.name in wanted)
    )
    if not found:
        raise UserError(
            "no-problems",
            f"{path}: no problem such as level1/1_Name.py found; name a checkout of "
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


def save_files(files: Iterable[tuple[str, EvaluationFile]], folder: Path) -> tuple[Path, ...]:
    """Write the files to the folder, created if new; UserError when that fails.

    An existing file of the same name is replaced.
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


def saved_line(saved: tuple[Path, ...]) -> str:
    """Return one line that lists the written files."""
    return f"saved {', '.join(map(str, saved))}" if saved else "there are no files to save"
