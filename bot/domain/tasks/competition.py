"""Reads and writes competitions: YAML in KernelBot's format with more keys, in a zip with tasks."""

import json
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from bot.domain.board import SeasonRules
from bot.domain.competition import LONGEST_NAME, PointsRule
from bot.domain.errors import UserError
from bot.domain.tasks import yaml_document
from bot.domain.tasks.bundle import (
    MAX_UNPACKED,
    TASK_FILE,
    TaskBundle,
    read_files,
    solutions,
    write_files,
)
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import ParsedTask, read_task
from bot.domain.times import parse_deadline, parse_opening
from runners.contract.task import GPU_NAME, TASK_NAME_FORM
from runners.contract.wire import Wire

Gpu = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]
_LONGEST_DESCRIPTION = 10_000
MOST_BOARDS = 100
MOST_GPUS = 64
MOST_LEADERBOARDS = 500
"""The most pairs of a board and a GPU type of a competition."""
MOST_RANKS = 1000
"""The most places for which a competition lists points."""


@dataclass(frozen=True, slots=True)
class CompetitionEntry:
    """One board of a competition; `directory` is relative to the file's folder."""

    directory: str
    name: str
    deadline: datetime | None
    gpus: tuple[str, ...]
    rules: SeasonRules = field(default_factory=SeasonRules)


@dataclass(frozen=True, slots=True)
class CompetitionDefinition:
    """A competition as its YAML describes it; `deadline` is that of boards that name no other."""

    name: str
    deadline: datetime | None
    description: str
    problems: tuple[CompetitionEntry, ...]
    warnings: tuple[str, ...] = ()
    points: PointsRule = field(default_factory=PointsRule)

    @property
    def opens_at(self) -> datetime | None:
        """Return when its first board opens; None if one is open from the beginning."""
        dates = [each.rules.opens_at for each in self.problems]
        return min((each for each in dates if each), default=None) if all(dates) else None


class _Lenient(Wire):
    """Ignores unknown keys: competition files may be written for KernelBot."""

    model_config = ConfigDict(extra="ignore")


class _ProblemEntry(_Lenient):
    directory: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_./-]*$")]
    name: Annotated[str, StringConstraints(pattern=TASK_NAME_FORM)]
    deadline: str | None = None
    gpus: Annotated[tuple[Gpu, ...], Field(max_length=MOST_GPUS)] = ()
    opens: str | None = None
    late_runs: bool | None = None


class _CompetitionFile(_Lenient):
    name: Annotated[str, StringConstraints(min_length=1)]
    deadline: str | None = None
    description: Annotated[str, StringConstraints(max_length=_LONGEST_DESCRIPTION)] = ""
    opens: str | None = None
    late_runs: bool = False
    points: Literal["ratio"] | None = None
    ranks: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1e6)], ...], Field(max_length=MOST_RANKS)
    ] = ()
    problems: Annotated[tuple[_ProblemEntry, ...], Field(min_length=1, max_length=MOST_BOARDS)]


def parse_competition(data: bytes, file: str) -> CompetitionDefinition:
    """Read a competition; unknown keys become warnings. UserError names file and line."""
    document = yaml_document.read_document(data, file)
    try:
        competition = _CompetitionFile.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        raise yaml_document.validation_refusal(document, error) from error
    if competition.points is not None and competition.ranks:
        raise document.refusal(("ranks",), "choose 'points: ratio' or 'ranks', not both")
    opens = _date(document, ("opens",), competition.opens, parse_opening)
    closes = _date(document, ("deadline",), competition.deadline, parse_deadline)
    default = CompetitionEntry("", "", closes, (), SeasonRules(opens, competition.late_runs))
    problems = tuple(
        _problem(document, i, entry, default) for i, entry in enumerate(competition.problems)
    )
    _require_distinct(document, problems)
    if sum(len(each.gpus) for each in problems) > MOST_LEADERBOARDS:
        words = f"at most {MOST_LEADERBOARDS} pairs of a board and a GPU type are allowed"
        raise document.refusal(("problems",), words)
    name = _name(document, competition.name)
    warnings = list(_warnings(document))
    if name != competition.name:
        warnings.append(document.refusal(("name",), f"the name is stored as {name!r}").message)
    return CompetitionDefinition(
        name=name,
        deadline=closes,
        description=competition.description,
        problems=problems,
        warnings=tuple(warnings),
        points=PointsRule(competition.ranks),
    )


def _name(document: yaml_document.Document, text: str) -> str:
    """Return the name on one line, and without slashes, because it is a part of addresses."""
    safe = "".join(each if each.isprintable() else " " for each in re.sub(r"[/\\]", "-", text))
    name = " ".join(safe.split())[:LONGEST_NAME].rstrip()
    if not name.strip("."):
        raise document.refusal(("name",), "write a name with letters or digits")
    return name


def _warnings(document: yaml_document.Document) -> Iterator[str]:
    """Yield the warnings about ignored keys."""
    yield from _unknown_keys(document, (), document.value, _CompetitionFile)
    problems = document.value["problems"]
    for i, problem in enumerate(problems if isinstance(problems, list) else ()):
        yield from _unknown_keys(document, ("problems", i), problem, _ProblemEntry)


def _unknown_keys(
    document: yaml_document.Document,
    path: yaml_document.Path,
    value: yaml_document.Value,
    model: type[Wire],
) -> Iterator[str]:
    known = model.model_fields
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            yield document.refusal((*path, key), yaml_document.unknown_key(key, known)).message


def _problem(
    document: yaml_document.Document, i: int, entry: _ProblemEntry, default: CompetitionEntry
) -> CompetitionEntry:
    """Return a board's entry; the dates and rules that it does not set are the default's."""
    path: yaml_document.Path = "problems", i
    if ".." in entry.directory.split("/"):
        raise document.refusal(
            (*path, "directory"),
            "a directory must be below the competition's folder, without '..'",
        )
    opens = _date(document, (*path, "opens"), entry.opens, parse_opening)
    opens = opens or default.rules.opens_at
    late_runs = default.rules.late_runs if entry.late_runs is None else entry.late_runs
    own_deadline = "deadline" in entry.model_fields_set  # an empty one means no deadline
    deadline = default.deadline
    if own_deadline:
        deadline = _date(document, (*path, "deadline"), entry.deadline, parse_deadline)
    if opens is not None and deadline is not None and deadline <= opens:
        key = "deadline" if own_deadline else "opens"
        raise document.refusal((*path, key), "the board closes before it opens")
    return CompetitionEntry(
        entry.directory.rstrip("/"), entry.name, deadline, entry.gpus, SeasonRules(opens, late_runs)
    )


def _require_distinct(
    document: yaml_document.Document, problems: tuple[CompetitionEntry, ...]
) -> None:
    names = [problem.name for problem in problems]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise document.refusal(("problems", i, "name"), f"the name {name!r} appears twice")


def _date(
    document: yaml_document.Document,
    path: yaml_document.Path,
    text: str | None,
    parse: Callable[[str], datetime],
) -> datetime | None:
    if text is None or not text.strip():
        return None
    try:
        return parse(text)
    except UserError as error:
        raise document.refusal(path, error.message) from error


_FILE = "competition.yaml"
_SUFFIXES = (".yaml", ".yml")
_LAYOUT = (
    "put the competition's YAML file, and below its folder the folders of its tasks, into the zip"
)
_TASK = ". The zip of one task makes a board: upload it at /create or with `/leaderboard create`"


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

    All tasks together may be as large as one unpacked zip; a shared file counts for each of them.
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
        texts = (*parsed.task.files.values(), *parsed.task.templates.values())
        size += sum(len(text.encode(errors="surrogatepass")) for text in texts)
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
        raise UserError("bad-zip", f"there is no competition in the zip; {_LAYOUT}{_TASK}")
    if len(found) > 1:
        words = f"a second YAML file in addition to {found[0]}"
        raise UserError("bad-zip", f"{found[1]}: {words}; keep one competition in a zip")
    return found[0]


def write_competition(definition: CompetitionDefinition, bundles: Sequence[TaskBundle]) -> bytes:
    """Return a zip of a competition and its tasks that `read_competition` can read.

    Each task has a folder of its own, with the files that it takes from outside.
    """
    files: dict[str, bytes] = {}
    problems = []
    for number, (entry, bundle) in enumerate(zip(definition.problems, bundles, strict=True), 1):
        files |= {f"task{number}/{name}": content for name, content in bundle.files.items()}
        problems.append(_written_entry(entry, posixpath.join(f"task{number}", bundle.root)))
    ranks = {"ranks": definition.points.ranks} if definition.points.ranks else {}
    body = {
        "name": definition.name,
        "description": definition.description,
        **ranks,
        "problems": problems,
    }
    return write_files({_FILE: json.dumps(body, indent=1).encode(), **files})


def _written_entry(entry: CompetitionEntry, directory: str) -> dict[str, object]:
    return {
        "directory": directory,
        "name": entry.name,
        "deadline": _text(entry.deadline),
        "gpus": entry.gpus,
        "opens": _text(entry.rules.opens_at),
        "late_runs": entry.rules.late_runs,
    }


def _text(moment: datetime | None) -> str | None:
    """Return a date in the format of a competition's YAML."""
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
