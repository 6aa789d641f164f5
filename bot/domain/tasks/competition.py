"""Competition YAML: tasks with dates, GPU types and points; KernelBot's format with more keys."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from bot.domain.board import SeasonRules
from bot.domain.competition import PointsRule
from bot.domain.errors import UserError
from bot.domain.tasks import yaml_document
from bot.domain.times import parse_deadline, parse_opening
from runners.contract.task import GPU_NAME, TASK_NAME_FORM
from runners.contract.wire import Wire

Gpu = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]
LONGEST_NAME = 100
"""The most characters of a competition's name; a longer one is cut."""
_LONGEST_DESCRIPTION = 10_000
MOST_BOARDS = 100
"""The most boards of a competition."""
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
    """A set of boards; None as deadline means that it stays open."""

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
    gpus: tuple[Gpu, ...] = ()
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
    default = SeasonRules(opens, competition.late_runs)
    problems = tuple(
        _problem(document, i, entry, default) for i, entry in enumerate(competition.problems)
    )
    _require_distinct(document, problems)
    name = _name(document, competition.name)
    warnings = list(_warnings(document))
    if name != competition.name:
        warnings.append(document.refusal(("name",), f"the name is stored as {name!r}").message)
    return CompetitionDefinition(
        name=name,
        deadline=_date(document, ("deadline",), competition.deadline, parse_deadline),
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
    document: yaml_document.Document, i: int, entry: _ProblemEntry, default: SeasonRules
) -> CompetitionEntry:
    path: yaml_document.Path = "problems", i
    if ".." in entry.directory.split("/"):
        raise document.refusal(
            (*path, "directory"),
            "a directory must be below the competition's folder, without '..'",
        )
    opens = _date(document, (*path, "opens"), entry.opens, parse_opening) or default.opens_at
    late_runs = default.late_runs if entry.late_runs is None else entry.late_runs
    deadline = _date(document, (*path, "deadline"), entry.deadline, parse_deadline)
    if opens is not None and deadline is not None and deadline <= opens:
        raise document.refusal((*path, "deadline"), "the board closes before it opens")
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
