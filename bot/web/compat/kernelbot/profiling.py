"""popcorn-cli's profile options, and the metadata that it gets with Nsight Compute's reports."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from bot.domain.errors import UserError
from bot.domain.submission import Submission
from bot.web.compat.kernelbot.boards import arguments
from bot.web.compat.kernelbot.http import Json
from runners.contract.evaluation import CPU, KernelNameBase, ProfileOptions
from runners.contract.task import TaskDefinition

_NO_NVIDIA = re.compile(rf"{CPU}|MI\d.*", re.IGNORECASE)


class _Asked(BaseModel):
    """The fields of the form, with their own names."""

    benchmark_index: Annotated[int, Field(ge=0)] | None = None
    ncu_kernel_name: Annotated[str, StringConstraints(min_length=1, max_length=1024)] | None = None
    ncu_kernel_name_base: KernelNameBase | None = None
    ncu_launch_count: Annotated[int, Field(ge=1, le=10_000)] | None = None


def options_of(fields: Mapping[str, str]) -> ProfileOptions:
    """The options in a form; RequestValidationError if they are invalid."""
    try:
        asked = _Asked.model_validate(fields)
        return ProfileOptions(
            benchmark=asked.benchmark_index,
            kernel_name=asked.ncu_kernel_name,
            kernel_name_base=asked.ncu_kernel_name_base,
            launch_count=asked.ncu_launch_count,
        )
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from error


def require_ncu(task: TaskDefinition, gpu: str) -> None:
    """UserError if Nsight Compute cannot profile the task on this GPU type."""
    if _NO_NVIDIA.fullmatch(gpu):
        words = (
            f"Nsight Compute profiles NVIDIA's GPUs, and {gpu} is none; for torch's profiler "
            "submit with `podium submit --mode profile`, or on Discord"
        )
    elif task.multi_gpu:
        words = f"{task.name} runs on several GPUs; Nsight Compute is asked of one here"
    elif not task.benchmarks:
        words = f"{task.name} has no benchmark to be profiled"
    else:
        return
    raise UserError("no-profile", words)


def metadata_of(submission: Submission, task: TaskDefinition) -> Json:
    """What was profiled, for the manifest that popcorn-cli writes."""
    asked = submission.profile or ProfileOptions()
    options = {
        "benchmark_index": asked.benchmark,
        "ncu_kernel_name": asked.kernel_name,
        "ncu_kernel_name_base": asked.kernel_name_base,
        "ncu_launch_count": asked.launch_count,
    }
    given = {name: value for name, value in options.items() if value is not None}
    config = {"task": task.model_dump(mode="json"), "profile_options": given}
    text = json.dumps(config, sort_keys=True).encode()
    return {
        "capture_options": given,
        "benchmark_specs": {
            str(number): arguments(case)
            for number, case in enumerate(task.benchmarks)
            if asked.benchmark in {None, number}
        },
        "config_sha256": hashlib.sha256(text).hexdigest(),
    }
