"""Competition YAML: tasks with deadlines and GPU types, in KernelBot's format."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from bot.domain.errors import UserError
from bot.domain.tasks import yaml_document
from bot.domain.times import parse_deadline
from runners.contract.task import GPU_NAME, TASK_NAME_FORM
from runners.contract.wire import Wire

Gpu = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]


@dataclass(frozen=True, slots=True)
class CompetitionEntry:
    """One board of a competition; `directory` is relative to the file's folder."""

    directory: str
    name: str
    deadline: datetime | None
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompetitionDefinition:
    """A set of boards; None as deadline means that it stays open."""

    name: str
    deadline: datetime | None
    description: str
    problems: tuple[CompetitionEntry, ...]
    warnings: tuple[str, ...] = ()


class _Lenient(Wire):
    """Ignores unknown keys: competition files may be written for KernelBot."""

    model_config = ConfigDict(extra="ignore")


class _ProblemEntry(_Lenient):
    directory: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_./-]*$")]
    name: Annotated[str, StringConstraints(pattern=TASK_NAME_FORM)]
    deadline: str | None = None
    gpus: tuple[Gpu, ...] = ()


class _CompetitionFile(_Lenient):
    name: Annotated[str, StringConstraints(min_length=1)]
    deadline: str | None = None
    description: str = ""
    problems: Annotated[tuple[_ProblemEntry, ...], Field(min_length=1)]


def parse_competition(data: bytes, file: str) -> CompetitionDefinition:
    """Read a competition; unknown keys become warnings. UserError names file and line."""
    document = yaml_document.read_document(data, file)
    try:
        competition = _CompetitionFile.model_validate_json(json.dumps(document.value))
    except ValidationError as error:
        raise yaml_document.validation_refusal(document, error) from error
    problems = tuple(_problem(document, i, entry) for i, entry in enumerate(competition.problems))
    _require_distinct(document, problems)
    deadline = _deadline(document, ("deadline",), competition.deadline)
    warnings = tuple(_warnings(document))
    return CompetitionDefinition(
        competition.name, deadline, competition.description, problems, warnings
    )


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


def _problem(document: yaml_document.Document, i: int, entry: _ProblemEntry) -> CompetitionEntry:
    if ".." in entry.directory.split("/"):
        raise document.refusal(
            ("problems", i, "directory"),
            "a directory must be below the competition's folder, without '..'",
        )
    deadline = _deadline(document, ("problems", i, "deadline"), entry.deadline)
    return CompetitionEntry(entry.directory.rstrip("/"), entry.name, deadline, entry.gpus)


def _require_distinct(
    document: yaml_document.Document, problems: tuple[CompetitionEntry, ...]
) -> None:
    names = [problem.name for problem in problems]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise document.refusal(("problems", i, "name"), f"the name {name!r} appears twice")


def _deadline(
    document: yaml_document.Document, path: yaml_document.Path, text: str | None
) -> datetime | None:
    if text is None or not text.strip():
        return None
    try:
        return parse_deadline(text)
    except UserError as error:
        raise document.refusal(path, error.message) from error
