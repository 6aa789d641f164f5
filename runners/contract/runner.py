"""The one protocol behind which every place to run hides."""

from collections.abc import Callable
from typing import Annotated, NewType, Protocol

from pydantic import Field, StringConstraints

from runners.contract.evaluation import Evaluation, EvaluationRequest, Isolation, Progress
from runners.contract.task import PYTHON, Grader, LanguageName, TaskFormat
from runners.contract.wire import CONTRACT_VERSION, ContractVersion, Wire

CallId = NewType("CallId", str)
"""A runner's own name for one started evaluation; stored at once, so that it can be found again."""

ProgressSink = Callable[[Progress], None]


class RunnerError(Exception):
    """The runner failed, not the submission; the queue tries again."""


class RunnerLostError(RunnerError):
    """The process or machine of a call ended under it; nobody knows what it would have given."""


class UnknownCallError(RunnerLostError):
    """The call is not known here any more: the machine that had it is gone."""


class OutOfService(Wire):
    """A card that nothing is run on, for what was timed there would tell of no kernel."""

    gpu: str
    """Its GPU type."""
    card: str
    """Which one of that type: its UUID, or its number."""
    why: str


class Capabilities(Wire):
    """What a runner offers."""

    contract_version: ContractVersion = CONTRACT_VERSION
    harness_version: str
    gpus: dict[str, int]
    """GPU type to the number of evaluations that may run at once."""
    languages: tuple[LanguageName, ...] = (PYTHON,)
    graders: tuple[Grader, ...] = (Grader.NATIVE,)
    formats: tuple[TaskFormat, ...] = (TaskFormat.KERNEL,)
    libraries: tuple[str, ...] = ()
    at_once: dict[str, int] = Field(default_factory=dict)
    """GPU type to the most GPUs of one host that one evaluation may use; 1 where none is named."""
    isolation: Isolation = Field(default_factory=lambda: Isolation(outer="none"))
    python: Annotated[str, StringConstraints(max_length=40)] = ""
    """The version of the Python in which submissions run; empty where it is not told."""
    out_of_service: tuple[OutOfService, ...] = ()
    """Cards that `gpus` does not count, until they are found fit again."""


class Health(Wire):
    """How a machine is before an evaluation: after the one before it, and all that it left."""

    unfit: str = ""
    """Why the GPU cannot be used; empty when it can."""
    scrubbed: int = 0
    """Bytes of the GPU's memory that the judge wiped, since the driver had not."""


class ServedLine(Wire):
    """One line that a serving harness prints; one of its fields is there.

    First `ready`; then, for every request, `health` before it is read, any number of `progress`,
    and `evaluation` or `error`.
    """

    ready: Capabilities | None = None
    health: Health | None = None
    progress: Progress | None = None
    evaluation: Evaluation | None = None
    error: str | None = None


class Runner(Protocol):
    """A way to get the harness run next to a GPU."""

    @property
    def name(self) -> str:
        """A short name, unique within one installation."""
        ...

    async def capabilities(self) -> Capabilities:
        """What this runner offers now; raises RunnerError when it cannot be reached."""
        ...

    async def start(self, request: EvaluationRequest) -> CallId:
        """Begin an evaluation and give its id at once, without waiting for a free slot."""
        ...

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        """Give the call's evaluation when it is there; RunnerError when the machine was lost."""
        ...

    async def cancel(self, call: CallId) -> None:
        """Stop the call and everything it started; no error when it has ended already."""
        ...

    async def aclose(self) -> None:
        """Stop every call and free everything."""
        ...
