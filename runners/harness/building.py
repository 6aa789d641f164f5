"""What a language is told to build, and what it gives back; both sides of the wire know these."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runners.contract.evaluation import Compiled
from runners.contract.launch import Signature
from runners.contract.task import BuildConfig, TaskDefinition, TaskFormat
from runners.contract.wire import Wire

Kernel = Callable[[Any], Any]
"""Takes an input and gives its output; for device code it takes a launch that lies ready."""


class Recipe(Wire):
    """What a language needs to know of a task; the files lie in the candidate's own folder."""

    language: str
    submission_file: str
    format: TaskFormat = TaskFormat.KERNEL
    config: BuildConfig = BuildConfig()
    signature: Signature | None = None
    """Of a kernel of device code."""


def recipe_of(task: TaskDefinition, signature: Signature | None = None) -> Recipe:
    """How a task's submissions are built."""
    by_contract = task.format is TaskFormat.IO_CONTRACT
    return Recipe(
        language=TaskFormat.IO_CONTRACT.value if by_contract else task.lang.name.lower(),
        submission_file=task.submission_file,
        format=task.format,
        config=task.config,
        signature=signature,
    )


@dataclass(frozen=True, slots=True)
class Built:
    """A submission that can be called, and what its compiler told of it."""

    kernel: Kernel
    compiled: Compiled | None = None


class InvalidSubmissionError(Exception):
    """The submission is well-formed, but does not define what the task asks for."""


class BuildFailedError(Exception):
    """A compiler refused the submission: the first of its complaints; `log` has all of them."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message)
        self.log = log
