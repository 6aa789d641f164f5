"""The protocol that every runner implements."""

from collections.abc import Callable
from typing import Annotated, NewType, Protocol

from pydantic import Field, StringConstraints

from runners.contract.evaluation import Evaluation, EvaluationRequest, Isolation, Progress
from runners.contract.task import PYTHON, Grader, LanguageName, TaskFormat
from runners.contract.wire import CONTRACT_VERSION, ContractVersion, Wire

CallId = NewType("CallId", str)
"""A runner's id of one started evaluation; the worker stores it to find the call again."""

ProgressSink = Callable[[Progress], None]


class RunnerError(Exception):
    """The runner failed, not the submission; the queue retries the job."""


class RunnerLostError(RunnerError):
    """The process or machine of a call ended during the call; its result is unknown."""


class UnknownCallError(RunnerLostError):
    """The runner does not know the call: it was canceled, or its machine was lost."""


class OutOfService(Wire):
    """A card that is not used, because times measured on it would be wrong."""

    gpu: str
    """Its GPU type."""
    card: str
    """Its UUID or index."""
    why: str


class Capabilities(Wire):
    """What a runner offers."""

    contract_version: ContractVersion = CONTRACT_VERSION
    harness_version: str
    gpus: dict[str, int]
    """GPU type -> number of evaluations that may run at once."""
    languages: tuple[LanguageName, ...] = (PYTHON,)
    graders: tuple[Grader, ...] = (Grader.NATIVE,)
    formats: tuple[TaskFormat, ...] = (TaskFormat.KERNEL,)
    libraries: tuple[str, ...] = ()
    at_once: dict[str, int] = Field(default_factory=dict)
    """GPU type -> the most GPUs of one host that one evaluation may use; 1 if not listed."""
    isolation: Isolation = Field(default_factory=lambda: Isolation(outer="none"))
    python: Annotated[str, StringConstraints(max_length=40)] = ""
    """The Python version in which submissions run; empty if unknown."""
    out_of_service: tuple[OutOfService, ...] = ()
    """Cards that `gpus` does not include because they are unfit."""


class Health(Wire):
    """The state of a machine before an evaluation."""

    unfit: str = ""
    """Why the GPU cannot be used; empty if it can."""
    scrubbed: int = 0
    """Bytes of GPU memory that the judge wiped because the driver had not wiped them."""


class ServedLine(Wire):
    """One line that a warm harness prints; exactly one field is set.

    The first line is `ready`. Then, for each request, it prints `health` before it reads the
    request, any number of `progress`, and finally `evaluation` or `error`.
    """

    ready: Capabilities | None = None
    health: Health | None = None
    progress: Progress | None = None
    evaluation: Evaluation | None = None
    error: str | None = None


class Runner(Protocol):
    """A way to run the harness next to a GPU."""

    @property
    def name(self) -> str:
        """A short name, unique within one installation."""
        ...

    async def capabilities(self) -> Capabilities:
        """What this runner offers now; RunnerError if it cannot be reached."""
        ...

    async def start(self, request: EvaluationRequest) -> CallId:
        """Start an evaluation and return its id at once, without waiting for a free slot."""
        ...

    async def wait(self, call: CallId, progress: ProgressSink) -> Evaluation:
        """Wait for the call's evaluation and return it; RunnerError if the machine was lost."""
        ...

    async def cancel(self, call: CallId) -> None:
        """Stop the call and everything it started; no error if it has ended already."""
        ...

    async def aclose(self) -> None:
        """Stop every call and free everything."""
        ...
