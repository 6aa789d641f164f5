"""What a request's result looks like to the evaluation server's clients."""

import re
from dataclasses import dataclass
from typing import Any

from bot.domain.evaluation_server.result import result_of
from bot.domain.job import JobState
from bot.services.evaluation_server.follow import Served
from runners.contract.verdict import Stage

POD = "podium"
"""In place of a worker's name, which callers do not learn."""
_KNOWN_GPU = re.compile(r"(a100|h100|h200)(?![a-z0-9])", re.IGNORECASE)
_STAGES = {
    Stage.PREPARE: "compiling",
    Stage.BUILD: "compiling",
    Stage.TEST: "validating",
    Stage.TIMING: "profiling",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A status with its body, and what goes into the header `X-GPU-Type`."""

    status: int
    body: dict[str, Any]
    gpu_type: str | None = None


def outcome(served: Served, address: str, *, in_time: bool = True) -> Answer:
    """The result of a request that was judged, or why there is none.

    Not `in_time`: its caller's time was over, so that it is stopped or about to be.
    """
    evaluation, gpu = served.evaluation, _gpu_type(served.job.gpu)
    if served.job.state is not JobState.SUCCEEDED or evaluation is None:
        fault = fault_of(served) if in_time else None
        return failure(500, fault or _timed_out(served), address, served)
    body: dict[str, Any] = {
        "job_id": str(served.submission.id),
        **result_of(served.request, evaluation),
        "pod_name": POD,
        "pod_ip": address,
        "status": "success",
        "gpu": served.job.gpu,
    }
    if gpu is not None:
        body["gpu_type"] = gpu
    return Answer(200, body, gpu)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no result: in one word for programs, and in a sentence."""

    category: str
    error: str


def failure(status: int, fault: Fault, address: str, served: Served | None = None) -> Answer:
    """No result, and why; with the job's number where one was taken in."""
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
    if served is not None:
        body["job_id"] = str(served.submission.id)
    return Answer(status, body)


def job(served: Served, address: str) -> dict[str, Any]:
    """A request as far as it has got, with its result once there is one."""
    fault = fault_of(served)
    body: dict[str, Any] = {
        "job_id": str(served.submission.id),
        "status": _status(served),
        "created_at": served.job.created_at.timestamp(),
        "error": None if fault is None else fault.error,
        "gpu": served.job.gpu,
    }
    if served.job.state is JobState.SUCCEEDED:
        body["result"] = outcome(served, address).body
    return body


def fault_of(served: Served) -> Fault | None:
    """Why a job that has ended has no result; None where it has one, or may have one yet."""
    match served.job.state:
        case JobState.FAILED:
            return Fault("our_fault", served.job.error or "Job failed")
        case JobState.CANCELLED:
            return _timed_out(served) if served.ran_out else Fault("cancelled", "Job was cancelled")
        case JobState.QUEUED | JobState.RUNNING | JobState.SUCCEEDED:
            return None


def _timed_out(served: Served) -> Fault:
    words = f"Job timed out after {served.request.timeout} seconds"
    if served.job.error:
        words += f"; its last attempt failed: {served.job.error}"
    return Fault("job_timed_out", words)


def _status(served: Served) -> str:
    match served.job.state:
        case JobState.QUEUED:
            return "submitted"
        case JobState.RUNNING:
            return _STAGES[served.stage or Stage.PREPARE]
        case JobState.SUCCEEDED:
            return "completed"
        case JobState.FAILED | JobState.CANCELLED:
            return "failed"


def _gpu_type(gpu: str) -> str | None:
    found = _KNOWN_GPU.match(gpu)
    return found[1].lower() if found else None
