"""Request and response bodies of submissions in `/api/v1`."""

import json
from collections.abc import Sequence
from typing import Any, Final

from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.api import submissions as api
from bot.domain.api.base import PATH
from bot.domain.api.boards import ConfirmationBody, LostPlaceBody
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobEvent
from bot.domain.records import HistoryEntry
from bot.domain.status import JobStatus, QueuePosition
from bot.domain.submission import SubmissionRequest
from bot.services.status import read_submission, unserved
from bot.web.bodies import form_of, parse, read_bytes, require_simple
from bot.web.context import WebContext
from bot.web.routes.api.openapi import board_line, schema_of, time_answer
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
        board=board_line(status.board, context.clock.now()),
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
        jobs=tuple(_job(each) for each in status.jobs),
        exclusion=None
        if exclusion is None
        else api.ExclusionAnswer(kind=exclusion.kind, reason=exclusion.reason),
        source_statement=submission.consent.statement(status.board.deadline),
        warning=submission.warning,
        unserved=await unserved(context.store, number),
    )


def _job(status: JobStatus) -> api.JobAnswer:
    job, evaluation = status.job, status.evaluation
    return api.JobAnswer(
        id=job.id,
        gpu=job.gpu,
        state=job.state,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        error=job.error,
        pool=job.pool,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        stage=status.stage,
        done=status.done,
        total=status.total,
        note=status.note,
        place=_place(status.place),
        evaluation=evaluation,
        cost=status.cost,
        confirmation=ConfirmationBody.of(status.confirmation),
        waits=job.waits,
        lost_place=LostPlaceBody.of(status.lost),
        ranks=time_answer(status.ranks),
    )


def _place(place: QueuePosition | None) -> api.QueuePositionBody | None:
    if place is None:
        return None
    return api.QueuePositionBody(
        position=place.position,
        estimate_s=place.estimate_s,
        paused=place.paused,
        running=place.running,
    )


def event_answer(event: JobEvent) -> api.Event:
    """Return one step of a job."""
    return api.Event(id=event.id, job=event.job, kind=event.kind, body=event.body, at=event.at)


def history_answer(entries: Sequence[HistoryEntry], limit: int) -> api.HistoryAnswer:
    """Return a page of at most `limit`; an extra entry means that there is a next page."""
    shown = entries[:limit]
    more = len(entries) > limit
    return api.HistoryAnswer(
        submissions=tuple(_past(each) for each in shown),
        next=str(shown[-1].submission.id) if more else None,
    )


def _past(entry: HistoryEntry) -> api.PastSubmission:
    submission = entry.submission
    results = (
        api.JobResultBody(
            gpu=each.gpu,
            verdict=each.verdict,
            time=time_answer(each.score),
            confirmation=each.confirmation,
            lost_to=each.lost_to,
            exclusion=each.exclusion,
        )
        for each in entry.results
    )
    return api.PastSubmission(
        id=submission.id,
        board=entry.board_name,
        board_id=submission.board,
        task_version=entry.version,
        task_version_id=submission.task_version,
        file_name=submission.file_name,
        source_hash=submission.source_hash,
        mode=submission.mode,
        gpus=submission.gpus,
        state=submission.state,
        created_at=submission.created_at,
        results=tuple(results),
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
