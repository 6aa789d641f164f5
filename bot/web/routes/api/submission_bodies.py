"""Request and response bodies of submissions in `/api/v1`."""

import json
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.api import submissions as api
from bot.domain.api.base import PATH
from bot.domain.api.boards import BoardLine
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.submission import SubmissionRequest
from bot.services.status import read_submission, unserved
from bot.web.bodies import form_of, parse, read_bytes, require_simple
from bot.web.context import WebContext
from bot.web.routes.api.openapi import schema_of
from runners.contract.task import GPU_NAME


def address_of(submission: SubmissionId) -> str:
    """Return a submission's address in this API, without the server's."""
    return f"{PATH}/submissions/{submission}"


async def submission_answer(
    context: WebContext, viewer: Viewer, number: SubmissionId
) -> api.SubmissionAnswer:
    """Return a submission's status; UserError when the viewer may not see it."""
    status = await read_submission(context.store, context.clock, viewer, number)
    submission, exclusion = status.submission, status.exclusion
    person = await context.store.people.get(submission.person)
    version = await context.store.boards.version(submission.task_version)
    return api.SubmissionAnswer(
        id=submission.id,
        url=address_of(submission.id),
        board=BoardLine.of(status.board, context.clock.now()),
        person_id=submission.person,
        person="" if person is None else person.name,
        task_version=0 if version is None else version.number,
        task_version_id=submission.task_version,
        file_name=submission.file_name,
        source_hash=submission.source_hash,
        mode=submission.mode,
        gpus=submission.gpus,
        state=status.state,
        created_at=submission.created_at,
        jobs=tuple(map(api.JobAnswer.of, status.jobs)),
        exclusion=None
        if exclusion is None
        else api.ExclusionAnswer(kind=exclusion.kind, reason=exclusion.reason),
        source_statement=submission.consent.statement(status.board.deadline),
        warning=submission.warning,
        unserved=await unserved(context.store, number),
    )


MOST = 8 * MAX_SOURCE_BYTES
"""The most bytes of a body; in JSON, one byte of a source may take six."""
_FORM: Final = "multipart/form-data"

ORDER_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": schema_of(api.SubmissionOrder)},
            _FORM: {
                "schema": {
                    "type": "object",
                    "required": ["file", "mode"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "mode": {"$ref": "#/components/schemas/Mode"},
                        "board": {"type": "string"},
                        "gpus": {
                            "type": "array",
                            "items": {"type": "string", "pattern": GPU_NAME.pattern},
                        },
                    },
                }
            },
        },
    }
}


async def order_of(request: Request, viewer: Viewer) -> SubmissionRequest:
    """Return the submission request in a body, a form or JSON; UserError when it is invalid."""
    if request.headers.get("content-type", "").lower().startswith(_FORM):
        async with form_of(request, MOST) as form:
            return await _of_form(form, viewer)
    text = await read_bytes(request, MOST)
    require_simple(text)
    order = parse(api.SubmissionOrder, text)
    content = order.source.encode(errors="surrogatepass")
    return SubmissionRequest(
        viewer, order.file_name, content, order.mode, order.board or None, order.gpus
    )


async def _of_form(form: FormData, viewer: Viewer) -> SubmissionRequest:
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise UserError("bad-body", "the form has no file; send it as the field `file`")
    fields = {name: _text(form, name) for name in ("mode", "board") if name in form}
    words = [word for each in form.getlist("gpus") for word in str(each).split(",")]
    gpus = [word.strip() for word in words if word.strip()]
    body = json.dumps({**fields, "gpus": gpus}).encode()
    order = parse(api.OrderFields, body, must="in addition to `file`, the form must have")
    return SubmissionRequest(
        viewer, file.filename or "", await file.read(), order.mode, order.board or None, order.gpus
    )


def _text(form: FormData, name: str) -> str:
    value = form[name]
    if not isinstance(value, str):
        raise UserError("bad-body", f"the form's field `{name}` is a file; send it as text")
    return value
