"""Creates and changes boards and competitions from zips, and shows their checks (`/checks`)."""

import json
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends, Path, Request, Response
from starlette.datastructures import FormData, UploadFile

from bot.domain.accounts import Caller
from bot.domain.api import publishing as api
from bot.domain.api.base import BODY_MAX, PATH, RequestBody
from bot.domain.api.boards import BoardAnswer, BoardLine
from bot.domain.board import Access, Board, parse_pins
from bot.domain.errors import UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import PublishRequest
from bot.reports.blocks import Tone
from bot.services import boards, lookup
from bot.services.publishing import publish
from bot.services.publishing.own_checks import Check
from bot.services.publishing.pipeline import prepare_competition
from bot.services.publishing.state import PublicationOutcome
from bot.web import auth, bodies, publications
from bot.web.context import WebContext, context_of
from bot.web.routes.api import openapi
from bot.web.sessions import MOST_WITH_ZIP

router = APIRouter(tags=["leaderboards"], dependencies=[Depends(openapi.uncached)])

_ACCEPTED = 202
_ZIP = "task_zip"
_COMPETITION_ZIP = "competition_zip"
_FLAGS = {"true": True, "false": False}
_LISTS = frozenset({"gpus"})
_POOLS = "pools"

Options = TypeVar("Options", bound=RequestBody)


@dataclass(frozen=True, slots=True)
class TaskZip:
    """The bytes of a zip, and its name without the suffix."""

    data: bytes
    name: str


def zip_body(kind: type[RequestBody], zip_field: str = _ZIP) -> dict[str, Any]:
    """Return `openapi_extra` for a route that reads this form."""
    schema = kind.model_json_schema(ref_template=openapi.REF)
    schema.pop("$defs", None)
    fields = {name: _without_null(each) for name, each in schema["properties"].items()}
    properties = {zip_field: {"type": "string", "format": "binary"}, **fields}
    schema |= {"properties": properties, "required": [zip_field]}
    content: Final = {"multipart/form-data": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Remove null from the schema: in a form, unset fields are left out."""
    kinds = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    kept = {key: value for key, value in schema.items() if key not in {"anyOf", "default"}}
    return {**kept, **kinds[0]}


async def zip_of(
    request: Request, kind: type[Options], zip_field: str = _ZIP
) -> tuple[TaskZip, Options]:
    """Return a form's zip and its fields; UserError when either is invalid."""
    async with bodies.form_of(request, MOST_WITH_ZIP, files=1) as form:
        file = form.get(zip_field)
        if not isinstance(file, UploadFile):
            raise UserError("bad-body", f"the form has no zip; send it as the file `{zip_field}`")
        body = json.dumps(_fields(form, zip_field)).encode()
        fields = bodies.parse(kind, body, must=f"in addition to `{zip_field}`, the form must have")
        name = PurePath((file.filename or "").replace("\\", "/")).stem[:100]
        return TaskZip(await file.read(), name), fields


def _fields(form: FormData, zip_field: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name in form.keys() - {zip_field}:
        values = [each for each in form.getlist(name) if isinstance(each, str)]
        if len(values) < len(form.getlist(name)):
            raise UserError("bad-body", f"the form's field `{name}` is a file; send it as text")
        if name in _LISTS:
            fields[name] = [word for each in values for word in each.replace(",", " ").split()]
        elif name == _POOLS:
            fields[name] = [word for word in values if word.strip()]
        else:
            fields[name] = _FLAGS.get(values[-1], values[-1])
    return fields


def _publish_request(
    viewer: Caller, options: api.BoardOptions, board: Board | None = None
) -> PublishRequest:
    """Return the request to change a board, or to create one; missing options keep its settings."""
    access = Access() if board is None else board.access
    return PublishRequest(
        viewer.person,
        None if board is None else board.name,
        options.gpus,
        options.deadline,
        endless=options.endless,
        as_admin=board is not None and viewer.sees_all,
        access=replace(
            access,
            visibility=options.visibility or access.visibility,
            source=options.source_visibility or access.source,
        ),
        pins=parse_pins(options.pools),
        onto=publish.NO_BOARD if board is None else board.task_version,
    )


@router.post("/leaderboards", status_code=_ACCEPTED, openapi_extra=zip_body(api.NewBoardOptions))
async def create(request: Request, response: Response, viewer: auth.MayCreate) -> api.CheckAnswer:
    """Create a board from a task zip; its check first runs the solutions in it."""
    context = context_of(request)
    task_zip, fields = await zip_of(request, api.NewBoardOptions)
    publish_request = replace(
        _publish_request(viewer, fields),
        name=fields.name or None,
        strict=not fields.lenient,
        grader=fields.grader,
    )
    number = await start_check(context, task_zip, publish_request)
    return await _accepted(context, viewer, number, response)


@router.post(
    "/leaderboards/{name}/task", status_code=_ACCEPTED, openapi_extra=zip_body(api.TaskOptions)
)
async def update(
    request: Request, response: Response, name: openapi.BoardName, viewer: auth.MayCreate
) -> api.CheckAnswer:
    """Publish a board's next task version after its check; old scores stay with the old version."""
    context = context_of(request)
    board = await lookup.find_board(context.store, viewer, name)
    task_zip, fields = await zip_of(request, api.TaskOptions)
    publish_request = replace(
        _publish_request(viewer, fields, board), strict=not fields.lenient, grader=fields.grader
    )
    number = await start_check(context, task_zip, publish_request)
    return await _accepted(context, viewer, number, response)


@router.patch("/leaderboards/{name}", openapi_extra=openapi.takes(api.BoardOptions))
async def configure(
    request: Request, name: openapi.BoardName, viewer: auth.MayCreate
) -> BoardAnswer:
    """Change a board's deadline, GPU types or pools, or who may see it and its sources."""
    context = context_of(request)
    board = await lookup.own_board(context.store, viewer, name)
    options = await bodies.read(request, api.BoardOptions, BODY_MAX)
    _, task = await lookup.task_of(context.store, viewer, board.name)
    publish_request = _publish_request(viewer, options, board)
    await publish.publish(context.store, context.clock, publish_request, task)
    overview = await boards.board(context.store, viewer, board.name)
    return BoardAnswer.seen(overview, context.clock.now())


@router.post(
    "/competitions",
    status_code=_ACCEPTED,
    openapi_extra=zip_body(api.CompetitionOptions, _COMPETITION_ZIP),
)
async def create_competition(
    request: Request, response: Response, viewer: auth.MayCreate
) -> api.CheckAnswer:
    """Publish a competition, or change yours, from a zip of its YAML and its tasks.

    All tasks are checked first, and all boards are published together, or none.
    """
    context = context_of(request)
    zip_file, fields = await zip_of(request, api.CompetitionOptions, _COMPETITION_ZIP)
    publish_request = PublishRequest(
        viewer.person, pins=parse_pins(fields.pools), strict=False, competition=True
    )
    publish_request = await prepare_competition(
        context.store,
        context.clock,
        publish_request,
        zip_file.data,
        is_admin=viewer.sees_all,
    )
    number = await publications.checks_of(context).submit(publish_request, zip_file.data)
    return await _accepted(context, viewer, number, response)


async def _accepted(
    context: WebContext, viewer: Caller, number: PublicationId, response: Response
) -> api.CheckAnswer:
    response.headers["Location"] = f"{PATH}/checks/{number}"
    return await _answer(context, await publications.checks_of(context).get(viewer, number))


@router.get("/checks")
async def own(request: Request, viewer: auth.FromPerson) -> api.ChecksAnswer:
    """Your own checks of the last month, newest first."""
    context = context_of(request)
    found = await publications.checks_of(context).of(viewer.person)
    return api.ChecksAnswer(checks=tuple([await _answer(context, each) for each in found]))


@router.get("/checks/{number}")
async def check(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: auth.FromPerson
) -> api.CheckAnswer:
    """The progress of your check: each run of its solutions, and the board published by it."""
    context = context_of(request)
    return await _answer(context, await publications.checks_of(context).get(viewer, number))


@router.delete("/checks/{number}")
async def cancel(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: auth.MaySubmit
) -> api.CheckAnswer:
    """Cancel your check before anything is published; its runs stop within seconds."""
    context = context_of(request)
    return await _answer(context, await publications.checks_of(context).cancel(viewer, number))


async def start_check(
    context: WebContext, task_zip: TaskZip, request: PublishRequest
) -> PublicationId:
    """Store a task to be checked and published; UserError for errors found without running it."""
    request = replace(request, zip_name=task_zip.name)
    _, parsed_task = await publish.read_upload(task_zip.data, request)
    task = parsed_task.task
    request = replace(request, name=request.board_name(task))
    request = await publish.with_gpus(context.store, request, task)
    await publish.validate_publish(context.store, context.clock, request, task)
    return await publications.checks_of(context).submit(request, task_zip.data)


async def _answer(context: WebContext, check: Check) -> api.CheckAnswer:
    """Return a check's progress and outcome."""
    return api.CheckAnswer(
        id=check.id,
        name=check.name,
        state=_state(check),
        begun=check.state.begun,
        runs=tuple(
            api.CheckRun(words=each.words, ok=None if each.tone is None else each.tone is Tone.GOOD)
            for each in publications.steps_of(check)
        ),
        remarks=tuple(words for words, _ in publications.remarks_of(check)),
        grading="" if check.outcome is None else check.outcome.grading,
        problem=_problem(check),
        published=await _published(context, check.outcome),
        competition=check.name if check.is_competition else None,
        boards=tuple(
            [
                published
                for each in (() if check.outcome is None else check.outcome.boards)
                if (published := await _published(context, each)) is not None
            ]
        ),
    )


def _state(check: Check) -> api.CheckState:
    outcome = check.outcome
    if outcome is None:
        return api.CheckState.RUNNING if check.tries else api.CheckState.WAITING
    return api.CheckState.PUBLISHED if outcome.published else api.CheckState.REFUSED


def _problem(check: Check) -> api.CheckProblem | None:
    outcome = check.outcome
    if outcome is None or outcome.published:
        return None
    return api.CheckProblem(code=outcome.code, detail=outcome.reason)


async def _published(
    context: WebContext, outcome: PublicationOutcome | None
) -> api.PublishedAnswer | None:
    if outcome is None or outcome.board is None:
        return None
    board = await context.store.boards.get(outcome.board)
    return api.PublishedAnswer(
        board=None if board is None else BoardLine.of(board, context.clock.now()),
        task_version=outcome.version,
        version_note=outcome.note,
        change=outcome.change,
        checked=tuple(api.GpuCheck(gpu=gpu, obstacle=why) for gpu, why in outcome.checked),
        grading=outcome.grading,
    )
