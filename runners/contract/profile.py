"""What may be asked of the profiler: one benchmark instead of all, and which kernels of a call."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from runners.contract.task import TaskDefinition
from runners.contract.wire import Wire


class KernelNameBase(StrEnum):
    """Which name of a kernel a filter is compared with."""

    FUNCTION = "function"
    DEMANGLED = "demangled"
    MANGLED = "mangled"


class ProfileOptions(Wire):
    """Options of one profile; what is left out is as usual."""

    benchmark: Annotated[int, Field(ge=0)] | None = None
    """The only one to be profiled, counted from 0."""
    kernel_name: (
        Annotated[str, StringConstraints(pattern=r"^[^\x00]+$", max_length=1024)] | None
    ) = None
    """As Nsight Compute filters kernels: a name, or `regex:` and an expression."""
    kernel_name_base: KernelNameBase | None = None
    launch_count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How many kernels of each call are looked at."""

    def chosen(self, task: TaskDefinition) -> TaskDefinition:
        """The task with the benchmark that is asked for alone; IndexError when it has none such."""
        if self.benchmark is None:
            return task
        return task.model_copy(update={"benchmarks": (task.benchmarks[self.benchmark],)})
