"""Options of the profiler: one benchmark instead of all, and which kernels of a call."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from runners.contract.task import TaskDefinition
from runners.contract.wire import Wire


class KernelNameBase(StrEnum):
    """The form of a kernel's name that a filter is compared with."""

    FUNCTION = "function"
    DEMANGLED = "demangled"
    MANGLED = "mangled"


class ProfileOptions(Wire):
    """Options of one profile; None means no restriction."""

    benchmark: Annotated[int, Field(ge=0)] | None = None
    """The index of the only benchmark to profile, from 0."""
    kernel_name: (
        Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=1024)] | None
    ) = None
    """A kernel filter of Nsight Compute: a name, or `regex:` followed by an expression."""
    kernel_name_base: KernelNameBase | None = None
    launch_count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many kernels of each call are profiled."""

    def chosen(self, task: TaskDefinition) -> TaskDefinition:
        """The task with only the requested benchmark; IndexError if it does not exist."""
        if self.benchmark is None:
            return task
        return task.model_copy(update={"benchmarks": (task.benchmarks[self.benchmark],)})
