"""A competition as one zip: its YAML, and the tasks below the folder of the YAML."""

import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import (
    MAX_UNPACKED,
    TASK_FILE,
    TaskBundle,
    read_files,
    solutions,
    write_files,
)
from bot.domain.tasks.competition import (
    CompetitionDefinition,
    CompetitionEntry,
    parse_competition,
)
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import ParsedTask, read_task

_FILE = "competition.yaml"
_SUFFIXES = (".yaml", ".yml")
_LAYOUT = (
    "put the competition's YAML file, and below its folder the folders of its tasks, into the zip"
)


@dataclass(frozen=True, slots=True)
class ParsedCompetition:
    """A competition read from a zip, with its tasks and their folders in the same order."""

    definition: CompetitionDefinition
    folders: tuple[str, ...]
    tasks: tuple[ParsedTask, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what was ignored, in the YAML and in the tasks."""
        in_tasks = (warning for each in self.tasks for warning in each.warnings)
        return (*self.definition.warnings, *in_tasks)

    def bundles(self, files: Mapping[str, bytes]) -> tuple[TaskBundle, ...]:
        """Return the bundle of each task from the files of the zip."""
        return tuple(_bundle(files, folder) for folder in self.folders)


def read_competition(data: bytes) -> ParsedCompetition:
    """Return the competition in a zip; UserError with file and line when anything is invalid.

    All tasks together have at most the size of one zip, although they may share files.
    """
    files = read_files(data)
    file = _competition_file(files)
    definition = parse_competition(files[file], file)
    top = posixpath.dirname(file)
    folders = tuple(posixpath.join(top, each.directory) for each in definition.problems)
    tasks, size = [], 0
    for folder in folders:
        bundle = _bundle(files, folder)
        parsed = read_task(bundle, strict=False)
        lint(parsed.task, solutions(bundle))
        size += sum(map(len, (*parsed.task.files.values(), *parsed.task.templates.values())))
        if size > MAX_UNPACKED:
            words = f"the tasks have more than {MAX_UNPACKED:,} bytes together"
            raise UserError("bad-zip", f"{folder}: {words}; publish fewer in one competition")
        tasks.append(parsed)
    return ParsedCompetition(definition, folders, tuple(tasks))


def _bundle(files: Mapping[str, bytes], folder: str) -> TaskBundle:
    root = posixpath.normpath(folder)
    return TaskBundle(files, root, posixpath.basename(root))


def _competition_file(files: Mapping[str, bytes]) -> str:
    """Return the path of the only YAML file that is nearest to the top and in no task's folder."""
    tasks = tuple(
        f"{posixpath.dirname(each)}/" for each in files if posixpath.basename(each) == TASK_FILE
    )
    found = [
        each
        for each in sorted(files)
        if each.endswith(_SUFFIXES)
        and posixpath.basename(each) != TASK_FILE
        and not each.startswith(tasks)
    ]
    nearest = min((each.count("/") for each in found), default=0)
    found = [each for each in found if each.count("/") == nearest]
    if not found:
        raise UserError("bad-zip", f"there is no competition in the zip; {_LAYOUT}")
    if len(found) > 1:
        words = f"a second YAML file in addition to {found[0]}"
        raise UserError("bad-zip", f"{found[1]}: {words}; keep one competition in a zip")
    return found[0]


def write_competition(definition: CompetitionDefinition, bundles: Sequence[TaskBundle]) -> bytes:
    """Return a zip of a competition and the tasks of its entries, as `read_competition` reads it.

    Each task has a folder of its own, with the files that it takes from outside.
    """
    files: dict[str, bytes] = {}
    problems = []
    for number, (entry, bundle) in enumerate(zip(definition.problems, bundles, strict=True), 1):
        files |= {f"task{number}/{name}": content for name, content in bundle.files.items()}
        problems.append(_problem(entry, posixpath.join(f"task{number}", bundle.root)))
    ranks = {"ranks": definition.points.ranks} if definition.points.ranks else {}
    body = {
        "name": definition.name,
        "description": definition.description,
        **ranks,
        "problems": problems,
    }
    return write_files({_FILE: json.dumps(body, indent=1).encode(), **files})


def _problem(entry: CompetitionEntry, directory: str) -> dict[str, object]:
    return {
        "directory": directory,
        "name": entry.name,
        "deadline": _text(entry.deadline),
        "gpus": entry.gpus,
        "opens": _text(entry.rules.opens_at),
        "late_runs": entry.rules.late_runs,
    }


def _text(moment: datetime | None) -> str | None:
    """Return a date as a competition YAML has it."""
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
