"""Reads task zips from forms, and writes the bodies of checks."""

import json
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any, Final, TypeVar

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from bot.domain.api.publishing import (
    BoardWish,
    CheckAnswer,
    CheckProblem,
    CheckRun,
    CheckState,
    GpuCheck,
    PublishedAnswer,
)
from bot.domain.board import Access, Board
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, ReleaseId
from bot.domain.publication import PublishRequest
from bot.domain.tasks.bundle import MAX_PACKED
from bot.ports import Store
from bot.reports.blocks import Tone
from bot.services.publishing.publish import read_upload, validate_publish, with_gpus
from bot.services.publishing.state import PublicationOutcome
from bot.web.bodies import form_of, parsed
from bot.web.context import WebContext
from bot.web.forms import ROOM
from bot.web.publications import Check, hand_in
from bot.web.routes.api.board_bodies import board_line

MOST = MAX_PACKED + ROOM
"""The most bytes of a form with a zip."""
_ZIP = "task_zip"
_FLAGS = {"true": True, "false": False}
_LISTS = frozenset({"gpus"})
_POOLS = "pools"

Fields = TypeVar("Fields", bound=BoardWish)


@dataclass(frozen=True, slots=True)
class TaskZip:
    """The bytes of a zip, and its name without the suffix."""

    data: bytes
    name: str


def zip_body(kind: type[BoardWish]) -> dict[str, Any]:
    """Return `openapi_extra` for a route that reads this form."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    schema.pop("$defs", None)
    fields = {name: _without_null(each) for name, each in schema["properties"].items()}
    properties = {_ZIP: {"type": "string", "format": "binary"}, **fields}
    schema |= {"properties": properties, "required": [_ZIP]}
    content: Final = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from the schema: in a form, unset fields are left out."""
    kinds = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    kept = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    return {**kept, **kinds[0]}


async def zip_of(request: Request, kind: type[Fields]) -> tuple[TaskZip, Fields]:
    """Return a form's zip and its fields; UserError when either is invalid."""
    async with form_of(request, MOST, files=1) as form:
        file = form.get(_ZIP)
        if not isinstance(file, UploadFile):
            raise UserError("bad-body", f"the form has no zip; send it as the file `{_ZIP}`")
        body = json.dumps(_fields(form)).encode()
        fields = parsed(kind, body, must="besides `task_zip`, the form must have")
        name = PurePath((file.filename or "").replace("\\", "/")).stem[:100]
        return TaskZip(await file.read(), name), fields


def _fields(form: FormData) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in form.keys() - {_ZIP}:
        words = [each for each in form.getlist(name) if isinstance(each, str)]
        if len(words) < len(form.getlist(name)):
            raise UserError("bad-body", f"the form's field `{name}` is a file; send it as text")
        if name in _LISTS:
            found[name] = [word for each in words for word in each.replace(",", " ").split()]
        elif name == _POOLS:
            found[name] = [word for word in words if word.strip()]
        else:
            found[name] = _FLAGS.get(words[-1], words[-1])
    return found


def access_of(fields: BoardWish, present: Access) -> Access:
    """Return who may see the board and its sources; what is missing stays, and guild and guests."""
    return replace(
        present,
        visibility=fields.visibility or present.visibility,
        source=fields.source_visibility or present.source,
    )


async def prove(door: WebContext, found: TaskZip, request: PublishRequest) -> ReleaseId:
    """Store a task to be checked and published; UserError for errors known already."""
    request = replace(request, zip_name=found.name)
    _, parsed_task = await read_upload(found.data, request)
    task = parsed_task.task
    request = replace(request, name=request.board_name(task))
    request = await with_gpus(door.store, door.runners, request, task)
    await validate_publish(door.store, door.clock, request, task)
    return await hand_in(door, request, found.data)


async def check_answer(store: Store, check: Check, now: datetime) -> CheckAnswer:
    """Return a check's progress and outcome."""
    outcome = check.outcome
    return CheckAnswer(
        id=check.id,
        name=check.name,
        state=_state(check),
        begun=check.state.begun,
        runs=tuple(
            CheckRun(words=each.words, ok=None if each.tone is None else each.tone is Tone.GOOD)
            for each in check.steps
        ),
        remarks=tuple(words for words, _ in check.remarks),
        problem=None if outcome is None else _problem(outcome),
        published=await _published(store, outcome, now),
    )


def _state(check: Check) -> CheckState:
    outcome = check.outcome
    if outcome is None:
        return CheckState.RUNNING if check.tries else CheckState.WAITING
    return CheckState.REFUSED if outcome.board is None else CheckState.PUBLISHED


def _problem(outcome: PublicationOutcome) -> CheckProblem | None:
    if outcome.board is not None:
        return None
    return CheckProblem(code=outcome.code, detail=outcome.reason)


async def _published(
    store: Store, outcome: PublicationOutcome | None, now: datetime
) -> PublishedAnswer | None:
    if outcome is None or outcome.board is None:
        return None
    board: Board | None = await store.boards.get(BoardId(outcome.board))
    return PublishedAnswer(
        board=None if board is None else board_line(board, now),
        task_version=outcome.version,
        version_note=outcome.note,
        change=outcome.change,
        checked=tuple(GpuCheck(gpu=gpu, obstacle=why) for gpu, why in outcome.checked),
    )
