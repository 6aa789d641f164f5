"""Handing in a file: to be polled for, or with everything that follows as one stream."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from bot.domain.rights import Caller
from bot.domain.submission import Submission, SubmissionRequest
from bot.frontends.web.compat.kernelbot.callers import FromSubmitter
from bot.frontends.web.compat.kernelbot.http import Route, answered
from bot.frontends.web.compat.kernelbot.modes import mode_of
from bot.frontends.web.compat.kernelbot.profiling import options_of, require_ncu
from bot.frontends.web.compat.kernelbot.queues import queue_where_known
from bot.frontends.web.compat.kernelbot.streaming import told
from bot.frontends.web.compat.kernelbot.uploads import Upload, upload_of
from bot.frontends.web.door import door_of
from bot.services.lookup import task_of
from bot.services.submit import submit
from runners.contract.profile import ProfileOptions
from runners.contract.task import Mode

router = APIRouter(route_class=Route)

_ACCEPTED = 202


@router.post("/submission/{board}/{gpu}/{mode}")
async def begin(
    request: Request, person: FromSubmitter, board: str, *, gpu: str, mode: str
) -> Response:
    """Take a file in; what comes of it is asked for by its id."""
    stored = await _stored(request, person, board, gpu=gpu, mode=mode)
    # Its own number stands for its job's as well: there is one GPU type, so there is one job.
    ids = {"id": stored.id, "job_status_id": stored.id}
    queue = await queue_where_known(door_of(request).store, stored.gpus[0])
    return answered({"details": ids, "runner_queue": queue, "status": "accepted"}, _ACCEPTED)


@router.post("/profile/{board}/{gpu}")
async def profile(
    request: Request, person: FromSubmitter, board: str, *, gpu: str
) -> StreamingResponse:
    """Take a file in, and tell what Nsight Compute sees of it; who hangs up has it cancelled."""
    _, task = await task_of(door_of(request).store, person, board.lower())
    require_ncu(task, gpu)
    upload = await upload_of(request)
    asked = options_of(upload.fields)
    stored = await _submitted(
        request, person, board, gpu=gpu, mode=Mode.PROFILE, upload=upload, profile=asked
    )
    return _followed(request, person, stored, by_ncu=True)


@router.post("/{board}/{gpu}/{mode}")
async def follow(
    request: Request, person: FromSubmitter, board: str, *, gpu: str, mode: str
) -> StreamingResponse:
    """Take a file in, and tell what comes of it; who hangs up has it cancelled."""
    stored = await _stored(request, person, board, gpu=gpu, mode=mode)
    return _followed(request, person, stored)


def _followed(
    request: Request, person: Caller, stored: Submission, *, by_ncu: bool = False
) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    events = told(door_of(request), person, stored, by_ncu=by_ncu)
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


async def _stored(
    request: Request, person: Caller, board: str, *, gpu: str, mode: str
) -> Submission:
    wanted = mode_of(mode)
    upload = await upload_of(request)
    return await _submitted(request, person, board, gpu=gpu, mode=wanted, upload=upload)


async def _submitted(  # noqa: PLR0913 - what the path, the form and the token say
    request: Request,
    person: Caller,
    board: str,
    *,
    gpu: str,
    mode: Mode,
    upload: Upload,
    profile: ProfileOptions | None = None,
) -> Submission:
    door = door_of(request)
    return await submit(
        door.store,
        door.clock,
        SubmissionRequest(
            viewer=person,
            file_name=upload.file_name,
            content=upload.content,
            mode=mode,
            board=board.lower(),
            gpus=(gpu,),
            profile=profile,
        ),
    )
