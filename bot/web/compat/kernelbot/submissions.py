"""Submitting a file; the caller's submissions: listing, showing and withdrawing them."""

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from bot.domain.accounts import Caller
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.scoring import ScoreValue
from bot.domain.status import SubmissionStatus
from bot.domain.submission import Submission, SubmissionRequest, SubmissionState
from bot.ports import Store
from bot.services import history, lookup, moderation, status, submissions
from bot.web.compat.kernelbot import boards, http, translate
from bot.web.compat.kernelbot.events import submission_events, unserved_note
from bot.web.context import STREAM_HEADERS, WebContext, context_of
from runners.contract.evaluation import CPU, KernelNameBase, ProfileOptions
from runners.contract.task import Mode, TaskDefinition

router = APIRouter(route_class=http.Route)

_PAGE, _FURTHEST = 100, 1_000
_UNFINISHED = {SubmissionState.QUEUED, SubmissionState.RUNNING}
Number = Annotated[int, Path(ge=1, lt=1 << 63)]


@router.get("/user/submissions")
async def own(
    request: Request,
    person: http.FromPerson,
    leaderboard: str | None = None,
    *,
    limit: int = 50,
    offset: int = 0,
) -> Response:
    """The caller's submissions, newest first, of one board or of all."""
    if not (1 <= limit <= _PAGE and 0 <= offset <= _FURTHEST):
        message = f"limit is from 1 to {_PAGE}, and offset from 0 to {_FURTHEST}"
        raise UserError("bad-page", message)
    name = None if leaderboard is None else leaderboard.lower()
    store = context_of(request).store
    entries = await history.submission_history(store, person, name, limit=offset + limit)
    return http.json_response([_summary(each) for each in entries[offset:]])


@router.get("/user/submissions/{number}")
async def one(request: Request, person: http.FromPerson, number: Number) -> Response:
    """The state of one of the caller's submissions; popcorn-cli polls every 5 s."""
    context = context_of(request)
    submission = await lookup.own_submission(context.store, person, SubmissionId(number))
    reading = await status.submission_status(context.store, submission.id)
    return http.json_response(await details(context, person, reading))


@router.delete("/user/submissions/{number}")
async def withdraw(request: Request, person: http.FromSubmitter, number: Number) -> Response:
    """Cancel its unfinished jobs and withdraw it from its board; the submission is kept."""
    store, submission = context_of(request).store, SubmissionId(number)
    await submissions.cancel(store, person, submission)
    try:
        await moderation.withdraw(store, person, "", submission)
    except UserError as error:
        if error.code != "off-board":  # repeating it is not an error
            raise
    return http.json_response({"status": "ok", "submission_id": number})


async def details(context: WebContext, caller: Caller, reading: SubmissionStatus) -> http.Json:
    """Return a submission with its source, its runs and its state."""
    submission, board = reading.submission, reading.board
    word, error = translate.state_of(reading)
    scores = await _scores(context.store, submission.id)
    queue = None
    if not reading.is_final:
        queue = await boards.queue_if_available(context.store, submission.gpus[0])
        if reading.exclusion is None:
            word += await unserved_note(context.store, submission)
    return {
        "id": submission.id,
        "leaderboard_id": board.id,
        "leaderboard_name": board.name,
        "file_name": submission.file_name,
        "user_id": str(submission.person),
        "submission_time": translate.moment(submission.created_at),
        "done": reading.is_final,
        "code": await _code(context, caller, submission.id),
        "runs": [
            run for job in reading.jobs for run in translate.runs_of(job, scores.get(job.job.gpu))
        ],
        "job": {"status": word, "error": error, "last_heartbeat": None},
        "runner_queue": queue,
    }


async def _code(context: WebContext, caller: Caller, submission: SubmissionId) -> str:
    """Return the source; empty if it is another person's and the board does not show sources."""
    try:
        return (await status.source(context.store, context.clock, caller, submission)).text
    except UserError as error:
        if error.code != "hidden-source":
            raise
        return ""


async def _scores(store: Store, submission: SubmissionId) -> dict[str, ScoreValue]:
    outcomes = await store.results.outcomes([submission])
    return {each.gpu: each.score for each in outcomes if each.score is not None}


def _summary(entry: HistoryEntry) -> http.Json:
    submission = entry.submission
    return {
        "id": submission.id,
        "leaderboard_name": entry.board_name,
        "file_name": submission.file_name,
        "submission_time": translate.moment(submission.created_at),
        "done": submission.state not in _UNFINISHED,
        "runs": [_line(each) for each in entry.results],
    }


def _line(outcome: JobResult) -> http.Json:
    return {"gpu_type": outcome.gpu, "score": translate.seconds(outcome.score)}


_ACCEPTED = 202


@router.post("/submission/{board}/{gpu}/{mode}")
async def begin(
    request: Request, person: http.FromSubmitter, board: str, *, gpu: str, mode: str
) -> Response:
    """Submit a file; its progress can be polled by the returned id."""
    stored = await _accept(request, person, board, gpu=gpu, mode=mode)
    # Its id is also the job's id, because one GPU type means one job.
    ids = {"id": stored.id, "job_status_id": stored.id}
    queue = await boards.queue_if_available(context_of(request).store, stored.gpus[0])
    return http.json_response(
        {"details": ids, "runner_queue": queue, "status": "accepted"}, _ACCEPTED
    )


@router.post("/profile/{board}/{gpu}")
async def profile(
    request: Request, person: http.FromSubmitter, board: str, *, gpu: str
) -> StreamingResponse:
    """Submit a file and stream Nsight Compute's results; disconnecting cancels it."""
    _, task = await lookup.task_of(context_of(request).store, person, board.lower())
    require_ncu(task, gpu)
    upload = await http.upload_of(request)
    options = options_of(upload.fields)
    stored = await _submit(
        request, person, board, gpu=gpu, mode=Mode.PROFILE, upload=upload, profile=options
    )
    return _streamed(request, person, stored, by_ncu=True)


_NO_NVIDIA = re.compile(rf"{CPU}|MI\d.*", re.IGNORECASE)


class _ProfileFields(BaseModel):
    """The fields of the form, with their own names."""

    benchmark_index: Annotated[int, Field(ge=0)] | None = None
    ncu_kernel_name: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None
    ncu_kernel_name_base: KernelNameBase | None = None
    ncu_launch_count: Annotated[int, Field(ge=1, le=10_000)] | None = None


def options_of(fields: Mapping[str, str]) -> ProfileOptions:
    """Return the options in a form; RequestValidationError if they are invalid."""
    try:
        form = _ProfileFields.model_validate(fields)
        return ProfileOptions(
            benchmark=form.benchmark_index,
            kernel_name=form.ncu_kernel_name,
            kernel_name_base=form.ncu_kernel_name_base,
            launch_count=form.ncu_launch_count,
        )
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error


def require_ncu(task: TaskDefinition, gpu: str) -> None:
    """UserError if Nsight Compute cannot profile the task on this GPU type."""
    if _NO_NVIDIA.fullmatch(gpu):
        message = (
            f"Nsight Compute profiles only NVIDIA GPUs, not {gpu}; for torch's profiler "
            "submit with `podium submit --mode profile`, or on Discord"
        )
    elif task.multi_gpu:
        message = f"{task.name} runs on several GPUs, but Nsight Compute profiles only one"
    elif not task.benchmarks:
        message = f"{task.name} has no benchmark to profile"
    else:
        return
    raise UserError("no-profile", message)


@router.post("/{board}/{gpu}/{mode}")
async def follow(
    request: Request, person: http.FromSubmitter, board: str, *, gpu: str, mode: str
) -> StreamingResponse:
    """Submit a file and stream its progress; disconnecting cancels it."""
    stored = await _accept(request, person, board, gpu=gpu, mode=mode)
    return _streamed(request, person, stored)


def _streamed(
    request: Request, person: Caller, stored: Submission, *, by_ncu: bool = False
) -> StreamingResponse:
    events = submission_events(context_of(request), person, stored, by_ncu=by_ncu)
    return StreamingResponse(events, media_type="text/event-stream", headers=STREAM_HEADERS)


async def _accept(
    request: Request, person: Caller, board: str, *, gpu: str, mode: str
) -> Submission:
    parsed_mode = translate.mode_of(mode)
    upload = await http.upload_of(request)
    return await _submit(request, person, board, gpu=gpu, mode=parsed_mode, upload=upload)


async def _submit(  # noqa: PLR0913 - from the path, the form and the token
    request: Request,
    person: Caller,
    board: str,
    *,
    gpu: str,
    mode: Mode,
    upload: http.UploadedFile,
    profile: ProfileOptions | None = None,
) -> Submission:
    context = context_of(request)
    return await submissions.submit(
        context.store,
        context.clock,
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
