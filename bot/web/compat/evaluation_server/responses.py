"""The response to a request: waits for its job and formats the result."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.job import JobState
from bot.domain.submission import Submission
from bot.web.compat.evaluation_server import jobs, requests, results
from bot.web.context import WebContext, context_of
from runners.contract.verdict import Stage

MOST_WAITING = 256
"""The most unfinished requests of one person."""
_AGAIN_S = 1.0
"""Seconds between two checks for a runner while there is none, as after a restart."""
POD = "podium"
"""Sent instead of the worker's name, which callers do not get."""
_KNOWN_GPU = re.compile(r"(a100|h100|h200)(?![a-z0-9])", re.IGNORECASE)
_STAGES = {
    Stage.PREPARE: "compiling",
    Stage.BUILD: "compiling",
    Stage.TEST: "validating",
    Stage.TIMING: "profiling",
}


@dataclass(frozen=True, slots=True)
class EvaluationResponse:
    """A status with its body, and what goes into the header `X-GPU-Type`."""

    status: int
    body: dict[str, Any]
    gpu_type: str | None = None


def outcome(
    stored: jobs.StoredRequest, address: str, *, in_time: bool = True
) -> EvaluationResponse:
    """Return the result of a judged request, or why there is none.

    `in_time` is False if the caller's timeout has passed, so the job is stopped or about to be.
    """
    evaluation, gpu = stored.evaluation, _gpu_type(stored.job.gpu)
    if stored.job.state is not JobState.SUCCEEDED or evaluation is None:
        fault = fault_of(stored) if in_time else None
        return failure(500, fault or _timed_out(stored), address, stored)
    body: dict[str, Any] = {
        "job_id": str(stored.submission.id),
        **results.result_of(stored.request, evaluation),
        "pod_name": POD,
        "pod_ip": address,
        "status": "success",
        "gpu": stored.job.gpu,
    }
    if gpu is not None:
        body["gpu_type"] = gpu
    return EvaluationResponse(200, body, gpu)


@dataclass(frozen=True, slots=True)
class ErrorDetail:
    """Why there is no result: a category for programs, and a message."""

    category: str
    error: str


def failure(
    status: int, fault: ErrorDetail, address: str, stored: jobs.StoredRequest | None = None
) -> EvaluationResponse:
    """Return the response without a result, with the reason and the job's number, if any."""
    body: dict[str, Any] = {
        "kernel_exec_result": {},
        "ref_runtime": {},
        "pod_name": POD,
        "pod_ip": address,
        "status": "error",
        "error": fault.error,
        "error_category": fault.category,
        "compilation_method": "judge",
    }
    if stored is not None:
        body["job_id"] = str(stored.submission.id)
    return EvaluationResponse(status, body)


def job(stored: jobs.StoredRequest, address: str) -> dict[str, Any]:
    """Return the state of a request, with its result once there is one."""
    fault = fault_of(stored)
    body: dict[str, Any] = {
        "job_id": str(stored.submission.id),
        "status": _status(stored),
        "created_at": stored.job.created_at.timestamp(),
        "error": None if fault is None else fault.error,
        "gpu": stored.job.gpu,
    }
    if stored.job.state is JobState.SUCCEEDED:
        body["result"] = outcome(stored, address).body
    return body


def fault_of(stored: jobs.StoredRequest) -> ErrorDetail | None:
    """Return why an ended job has no result; None if it has one or has not ended."""
    match stored.job.state:
        case JobState.FAILED:
            return ErrorDetail("our_fault", stored.job.error or "Job failed")
        case JobState.CANCELLED:
            return (
                _timed_out(stored)
                if stored.timed_out
                else ErrorDetail("cancelled", "Job was cancelled")
            )
        case JobState.QUEUED | JobState.RUNNING | JobState.SUCCEEDED:
            return None


def _timed_out(stored: jobs.StoredRequest) -> ErrorDetail:
    message = f"Job timed out after {stored.request.timeout} seconds"
    if stored.job.error:
        message += f"; its last attempt failed: {stored.job.error}"
    return ErrorDetail("job_timed_out", message)


def _status(stored: jobs.StoredRequest) -> str:
    match stored.job.state:
        case JobState.QUEUED:
            return "submitted"
        case JobState.RUNNING:
            return _STAGES[stored.stage or Stage.PREPARE]
        case JobState.SUCCEEDED:
            return "completed"
        case JobState.FAILED | JobState.CANCELLED:
            return "failed"


def _gpu_type(gpu: str) -> str | None:
    match = _KNOWN_GPU.match(gpu)
    return match[1].lower() if match else None


async def exchange(
    request: Request, viewer: Viewer, evaluation_request: requests.Request, begun: float
) -> EvaluationResponse:
    """Accept a request and return its response, at the latest shortly before the caller's timeout.

    `begun` is the event loop's time at which the call began. If the caller disconnects earlier, the
    job continues until it ends or its timeout cancels it.
    """
    requests.require_limits(evaluation_request)
    context, address = context_of(request), address_of(request)
    if context.device_metrics and "device_metrics" not in evaluation_request.model_fields_set:
        evaluation_request = evaluation_request.model_copy(update={"device_metrics": True})
    until = begun + evaluation_request.timeout - jobs.margin_s(evaluation_request)
    try:
        submission = await _accepted(context, viewer, evaluation_request, until)
    except jobs.NoRunnerError as error:
        return failure(500, ErrorDetail("no_runner", f"Job failed: {error}"), address)
    try:
        in_time = await jobs.wait(
            context.store, submission.id, until, lambda: context.closing.begun
        )
    except jobs.ClosingError:
        message = f"this server stops; the job continues, and /job/{submission.id} has its result"
        stopped = ErrorDetail("server_stops", message)
        stored = await jobs.find_request(context.store, viewer, submission.id)
        return failure(503, stopped, address, stored)
    stored = await jobs.find_request(context.store, viewer, submission.id)
    # A profiler's tables may take a while to read.
    return await asyncio.to_thread(outcome, stored, address, in_time=in_time)


async def _accepted(
    context: WebContext, viewer: Viewer, evaluation_request: requests.Request, until: float
) -> Submission:
    if len(await context.store.jobs.unfinished_of(viewer.person)) >= MOST_WAITING:
        message = f"{MOST_WAITING} of your jobs have not ended; wait for some of them"
        raise UserError("rate-limit", message)
    loop = asyncio.get_running_loop()
    while True:
        try:
            return await jobs.accept(
                context.store, context.clock, viewer.person, evaluation_request
            )
        except jobs.NoRunnerError as error:
            if error.has_runners or context.closing.begun or loop.time() + _AGAIN_S >= until:
                raise
        await asyncio.sleep(_AGAIN_S)


def address_of(request: Request) -> str:
    """Return the address of this web server as the caller used it."""
    server = request.scope.get("server")
    return str(server[0]) if server else ""
