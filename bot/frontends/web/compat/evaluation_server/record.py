"""What is kept of a request: among the files of the task version that was made from it.

The kernels are left out but for their types: the judged one's source is the submission's, and all
else is in the contract beside it. So a poll reads little, and literal data is kept once.
"""

from pydantic import TypeAdapter

from bot.frontends.web.compat.evaluation_server.requests import (
    CompareRequest,
    EvaluateRequest,
    KernelCode,
    Request,
)
from bot.frontends.web.compat.evaluation_server.translate import rounds_of
from runners.contract.evaluation import RoundPolicy
from runners.contract.task import TaskDefinition, TaskFormat

RECORD = "request.json"

_REQUEST: TypeAdapter[Request] = TypeAdapter(Request)


def with_record(task: TaskDefinition, request: Request) -> TaskDefinition:
    """The task with the request among its files; no candidate is shown it."""
    kept = _without_kernels(request).model_dump_json(exclude_none=True)
    return task.model_copy(update={"files": {**task.files, RECORD: kept}})


def recorded(task: TaskDefinition) -> Request:
    """The request from which a task was made, without its kernels."""
    return _REQUEST.validate_json(task.files[RECORD])


def rounds_asked(task: TaskDefinition) -> RoundPolicy | None:
    """How often a request wants its kernels timed; None for a task of another kind."""
    if RECORD not in task.files or task.format is not TaskFormat.IO_CONTRACT:
        return None
    return rounds_of(recorded(task).num_trials)


def _without_kernels(request: Request) -> Request:
    match request:
        case EvaluateRequest(kernel=kernel):
            return request.model_copy(update={"kernel": _bare(kernel)})
        case CompareRequest(ref_kernel=ref, custom_kernel=custom):
            bare = {"ref_kernel": _bare(ref), "custom_kernel": _bare(custom)}
            return request.model_copy(update=bare)


def _bare(kernel: KernelCode) -> KernelCode:
    return KernelCode(source_code="", kernel_type=kernel.kernel_type)
