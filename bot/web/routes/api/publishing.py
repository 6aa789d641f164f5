"""`/api/v1/leaderboards`: makes and changes boards by task zips; `/checks`: the checks of these."""

import json
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.datastructures import FormData, UploadFile

from bot.domain.accounts import Caller
from bot.domain.api import publishing as api
from bot.domain.api.base import BODY_MAX, PATH
from bot.domain.api.boards import BoardAnswer
from bot.domain.board import Access, parse_pins
from bot.domain.errors import UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import PublishRequest
from bot.domain.tasks.bundle import MAX_PACKED
from bot.reports.blocks import Tone
from bot.services import boards as service
from bot.services.lookup import find_board, own_board, task_of
from bot.services.publishing.publish import (
    NO_BOARD,
    publish,
    read_upload,
    validate_publish,
    with_gpus,
)
from bot.web.auth import FromPerson, MayCreate
from bot.web.bodies import form_of, parsed, read
from bot.web.context import DOOR, WebContext, context_of
from bot.web.publications import Check, hand_in, own_check
from bot.web.routes.api.openapi import BoardName, board_answer, board_line, takes, unkept
from bot.web.sessions import ROOM

router = APIRouter(tags=["leaderboards"], dependencies=[Depends(unkept)])

_TAKEN = 202
MOST = MAX_PACKED + ROOM
"""The most bytes of a form with a zip."""
_ZIP = "task_zip"
_FLAGS = {"true": True, "false": False}
_LISTS = frozenset({"gpus"})
_POOLS = "pools"

Fields = TypeVar("Fields", bound=api.BoardOptions)


@dataclass(frozen=True, slots=True)
class TaskZip:
    """The bytes of a zip, and its name without the suffix."""

    data: bytes
    name: str


def zip_body(kind: type[api.BoardOptions]) -> dict[str, Any]:
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


def access_of(fields: api.BoardOptions, present: Access) -> Access:
    """Return who may see the board and its sources; what is missing stays, and guild and guests."""
    return replace(
        present,
        visibility=fields.visibility or present.visibility,
        source=fields.source_visibility or present.source,
    )


@router.post("/leaderboards", status_code=_TAKEN, openapi_extra=zip_body(api.NewBoardOptions))
async def create(request: Request, response: Response, viewer: MayCreate) -> api.CheckAnswer:
    """Make a board of a task zip: its own solutions are run first; follow the check."""
    door = context_of(request)
    found, fields = await zip_of(request, api.NewBoardOptions)
    wanted = PublishRequest(
        viewer.person,
        fields.name or None,
        fields.gpus,
        fields.deadline,
        endless=fields.endless,
        access=access_of(fields, Access()),
        pins=parse_pins(fields.pools),
        onto=NO_BOARD,
        strict=not fields.lenient,
    )
    return await _taken(door, viewer, await prove(door, found, wanted), response)


@router.post(
    "/leaderboards/{name}/task", status_code=_TAKEN, openapi_extra=zip_body(api.TaskOptions)
)
async def update(
    request: Request, response: Response, name: BoardName, viewer: MayCreate
) -> api.CheckAnswer:
    """Give a board its task's next version, once that is proven; old scores stay with theirs."""
    door = context_of(request)
    board = await find_board(door.store, viewer, name)
    found, fields = await zip_of(request, api.TaskOptions)
    wanted = PublishRequest(
        viewer.person,
        board.name,
        fields.gpus,
        fields.deadline,
        endless=fields.endless,
        as_admin=viewer.sees_all,
        access=access_of(fields, board.access),
        pins=parse_pins(fields.pools),
        onto=board.task_version,
        strict=not fields.lenient,
    )
    return await _taken(door, viewer, await prove(door, found, wanted), response)


@router.patch("/leaderboards/{name}", openapi_extra=takes(api.BoardOptions))
async def configure(request: Request, name: BoardName, viewer: MayCreate) -> BoardAnswer:
    """Change a board's deadline, its GPU types, or who may see it and its sources."""
    door = context_of(request)
    board = await own_board(door.store, viewer, name)
    wanted = await read(request, api.BoardOptions, BODY_MAX)
    _, task = await task_of(door.store, viewer, board.name)
    change = PublishRequest(
        viewer.person,
        board.name,
        wanted.gpus,
        wanted.deadline,
        endless=wanted.endless,
        as_admin=viewer.sees_all,
        access=access_of(wanted, board.access),
        pins=parse_pins(wanted.pools),
        onto=board.task_version,
    )
    await publish(door.store, door.clock, change, task)
    found = await service.board(door.store, viewer, board.name)
    return board_answer(found, door.clock.now())


async def _taken(
    door: WebContext, viewer: Caller, number: PublicationId, response: Response
) -> api.CheckAnswer:
    response.headers["Location"] = f"{PATH}/checks/{number}"
    return await _answer(door, await own_check(door, viewer, number))


@router.get("/checks")
async def own(request: Request, viewer: FromPerson) -> api.ChecksAnswer:
    """Your own checks of the last month, newest first."""
    door = context_of(request)
    told = await door.store.publications.summaries_of(DOOR, viewer.person)
    return api.ChecksAnswer(checks=tuple([await _answer(door, Check.of(each)) for each in told]))


@router.get("/checks/{number}")
async def check(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: FromPerson
) -> api.CheckAnswer:
    """How far a check of yours is: each run of its solutions, and what became of the board."""
    door = context_of(request)
    return await _answer(door, await own_check(door, viewer, number))


async def prove(door: WebContext, found: TaskZip, request: PublishRequest) -> PublicationId:
    """Store a task to be checked and published; UserError for errors known already."""
    request = replace(request, zip_name=found.name)
    _, parsed_task = await read_upload(found.data, request)
    task = parsed_task.task
    request = replace(request, name=request.board_name(task))
    request = await with_gpus(door.store, door.runners, request, task)
    await validate_publish(door.store, door.clock, request, task)
    return await hand_in(door, request, found.data)


async def _answer(door: WebContext, check: Check) -> api.CheckAnswer:
    """Return a check's progress and outcome."""
    return api.CheckAnswer(
        id=check.id,
        name=check.name,
        state=_state(check),
        begun=check.state.begun,
        runs=tuple(
            api.CheckRun(words=each.words, ok=None if each.tone is None else each.tone is Tone.GOOD)
            for each in check.steps
        ),
        remarks=tuple(words for words, _ in check.remarks),
        problem=_problem(check),
        published=await _published(door, check),
    )


def _state(check: Check) -> api.CheckState:
    outcome = check.outcome
    if outcome is None:
        return api.CheckState.RUNNING if check.tries else api.CheckState.WAITING
    return api.CheckState.REFUSED if outcome.board is None else api.CheckState.PUBLISHED


def _problem(check: Check) -> api.CheckProblem | None:
    outcome = check.outcome
    if outcome is None or outcome.board is not None:
        return None
    return api.CheckProblem(code=outcome.code, detail=outcome.reason)


async def _published(door: WebContext, check: Check) -> api.PublishedAnswer | None:
    outcome = check.outcome
    if outcome is None or outcome.board is None:
        return None
    board = await door.store.boards.get(outcome.board)
    return api.PublishedAnswer(
        board=None if board is None else board_line(board, door.clock.now()),
        task_version=outcome.version,
        version_note=outcome.note,
        change=outcome.change,
        checked=tuple(api.GpuCheck(gpu=gpu, obstacle=why) for gpu, why in outcome.checked),
    )
