"""Competition YAML: a set of tasks with its deadlines and GPU types, in KernelBot's form."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, StringConstraints, ValidationError

from bot.domain.document import Document, read_document, unknown_key, validation_refusal
from bot.domain.errors import UserError
from runners.contract.task import GPU_NAME
from runners.contract.wire import Wire

_DEADLINE = re.compile(
    r"(?P<day>\d{4}-\d{1,2}-\d{1,2})(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::\d{2})?)?"
    r"(?:\s*(?P<zone>[A-Za-z][A-Za-z0-9_+/-]*|[+-]\d{2}:?\d{2}))?"
)

Gpu = Annotated[str, StringConstraints(pattern=GPU_NAME.pattern)]


@dataclass(frozen=True, slots=True)
class Problem:
    """One board of a competition; `directory` is the task's folder below the set's parent."""

    directory: str
    name: str
    deadline: datetime | None
    gpus: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Competition:
    """A set of boards; None as deadline means that it stays open."""

    name: str
    deadline: datetime | None
    description: str
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...] = ()


class _ProblemEntry(Wire):
    directory: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_./-]*$")]
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    deadline: str | None = None
    gpus: tuple[Gpu, ...] = ()


class _CompetitionFile(Wire):
    name: Annotated[str, StringConstraints(min_length=1)]
    deadline: str | None = None
    description: str = ""
    problems: Annotated[tuple[_ProblemEntry, ...], Field(min_length=1)]


def parse_competition(
    text: str | bytes, *, file: str = "competition.yml", strict: bool = True
) -> Competition:
    """Read a competition; UserError with file and line. Not strict: unknown keys are warnings."""
    data = text.encode() if isinstance(text, str) else text
    document = read_document(data, file)
    known = dict(document.value)
    warnings = []
    for key in document.value.keys() - _CompetitionFile.model_fields.keys():
        refused = document.refusal((key,), unknown_key(key, _CompetitionFile.model_fields))
        if strict:
            raise refused
        warnings.append(refused.message)
        del known[key]
    try:
        written = _CompetitionFile.model_validate_json(json.dumps(known))
    except ValidationError as error:
        raise _schema_refusal(document, error) from error
    problems = tuple(_problem(document, i, entry) for i, entry in enumerate(written.problems))
    _require_distinct(document, problems)
    deadline = _deadline(document, ("deadline",), written.deadline)
    return Competition(written.name, deadline, written.description, problems, tuple(warnings))


def _schema_refusal(document: Document, error: ValidationError) -> UserError:
    found = error.errors(include_url=False)[0]
    if found["type"] == "extra_forbidden":
        key = str(found["loc"][-1])
        return document.refusal(found["loc"], unknown_key(key, _ProblemEntry.model_fields))
    return validation_refusal(document, error)


def _problem(document: Document, i: int, entry: _ProblemEntry) -> Problem:
    if ".." in entry.directory.split("/"):
        raise document.refusal(
            ("problems", i, "directory"), "a directory lies below the set, without '..'"
        )
    deadline = _deadline(document, ("problems", i, "deadline"), entry.deadline)
    return Problem(entry.directory.rstrip("/"), entry.name, deadline, entry.gpus)


def _require_distinct(document: Document, problems: tuple[Problem, ...]) -> None:
    names = [problem.name for problem in problems]
    for i, name in enumerate(names):
        if name in names[:i]:
            raise document.refusal(("problems", i, "name"), f"the name {name!r} stands here again")


def _deadline(document: Document, path: tuple[str | int, ...], text: str | None) -> datetime | None:
    try:
        return parse_deadline(text or "")
    except UserError as error:
        raise document.refusal(path, error.message) from error


def parse_deadline(text: str) -> datetime | None:
    """`YYYY-MM-DD[ HH:MM][ zone]` as an aware time, UTC when no zone is named; None when empty."""
    if not text.strip():
        return None
    found = _DEADLINE.fullmatch(text.strip())
    if found is None:
        raise _deadline_refusal(text)
    try:
        day = datetime.strptime(found["day"], "%Y-%m-%d").replace(tzinfo=UTC)
        hour, minute = int(found["hour"] or 0), int(found["minute"] or 0)
        return day.replace(hour=hour, minute=minute, tzinfo=_zone(found["zone"])).astimezone(UTC)
    except (ValueError, OverflowError, ZoneInfoNotFoundError, OSError) as error:
        raise _deadline_refusal(text) from error


def _zone(text: str | None) -> tzinfo:
    if text is None or text.upper() in ("UTC", "Z", "GMT"):
        return UTC
    if text[0] in "+-":
        sign = -1 if text[0] == "-" else 1
        hours, minutes = int(text[1:3]), int(text[-2:])
        return timezone(sign * timedelta(hours=hours, minutes=minutes))
    return ZoneInfo(text)


def _deadline_refusal(text: str) -> UserError:
    return UserError(
        "bad-deadline",
        f"{text!r} is no deadline; write YYYY-MM-DD[ HH:MM][ zone], as in "
        "'2030-06-30 18:00 Europe/Berlin'",
    )
