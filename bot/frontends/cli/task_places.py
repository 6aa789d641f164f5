"""What the places on a command line name: tasks in folders and zips, and sets of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.domain.competition import Problem, parse_competition
from bot.domain.document import MAX_BYTES
from bot.domain.errors import UserError
from bot.domain.task_bundle import TASK_FILE, TaskBundle
from bot.domain.task_file import parse_task, read_task
from bot.frontends.cli.context import CommandLine
from runners.contract.task import TaskDefinition

Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Tasks take files from beneath it; else from beneath their competition's YAML, or "
        "from the folder around their own",
    ),
]
_SETS = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Listed:
    """One task, read and well-formed; `problem` is what its competition says about it."""

    place: Path
    bundle: TaskBundle
    task: TaskDefinition
    problem: Problem | None = None
    strict: bool = True
    """False where something in its task.yml was ignored with a warning."""

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPU types that its competition names."""
        return () if self.problem is None else self.problem.gpus


def read_places(
    line: CommandLine, places: Sequence[Path], root: Path | None = None
) -> tuple[Listed, ...]:
    """Every task that the places name: all of them are read before anything is done with one.

    A task takes files from beneath `root`; else from beneath the folder of its competition's
    YAML, or where none lists it, from the folder around its own.
    """
    return tuple(listed for place in places for listed in _read(line, place, root))


def _read(line: CommandLine, place: Path, root: Path | None) -> Iterator[Listed]:
    if place.name == TASK_FILE:
        place = place.parent
    if place.suffix in _SETS and place.is_file():
        yield from _read_set(line, place, root or place.parent)
        return
    for folder in line.installation.task_folders(place) or (place,):
        bundle = line.installation.read_task(folder, root)
        yield Listed(folder, bundle, parse_task(bundle))


def _read_set(line: CommandLine, file: Path, root: Path) -> Iterator[Listed]:
    """The tasks of a competition; what its files have and we do not know is said, and passed."""
    competition = parse_competition(_content(file), str(file))
    _say(line, competition.warnings)
    for problem in competition.problems:
        folder = file.parent / problem.directory
        bundle = line.installation.read_task(folder, root)
        parsed = read_task(bundle, strict=False)
        _say(line, parsed.warnings)
        yield Listed(folder, bundle, parsed.task, problem, strict=not parsed.warnings)


def _say(line: CommandLine, warnings: Sequence[str]) -> None:
    for warning in warnings:
        line.say(f"warning: {warning}")


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError("no-such-file", f"{file}: cannot be read ({error.strerror})") from error
