"""How grading ends: exceptions that carry a verdict, and the result of all cases."""

import re
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from runners.contract.comparison import Comparison
from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus
from runners.contract.task import Workload
from runners.contract.verdict import Stage, Verdict

_T = TypeVar("_T")
MESSAGE_MAX = 10_000
"""A verdict's message is cut after this many characters; a check may quote a whole output in it."""


def printable(message: str) -> str:
    """Return a message as it can be sent: shortened, and without lone surrogates."""
    if len(message) > MESSAGE_MAX:
        message = f"{message[:MESSAGE_MAX]} [... {len(message) - MESSAGE_MAX} characters omitted]"
    return message.encode(errors="replace").decode()


_OWN_FRAME = re.compile(
    rf'^  File "(?:{re.escape(__file__.rsplit("/", 2)[0])}/|<frozen (?:runpy|importlib)).*\n?'
    r"|^Extension modules: .*\n?",
    re.MULTILINE,
)


def without_own_frames(log: str) -> str:
    """Return a log without what Python's fault handler says of the harness after a native crash."""
    return _OWN_FRAME.sub("", log) if "Fatal Python error" in log else log


class VerdictError(Exception):
    """Ends the evaluation with `verdict`; `message` may be shown to the submitter in public modes.

    `stage` is set only if the code that catches it cannot know the stage.
    """

    def __init__(self, verdict: Verdict, message: str, stage: Stage | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = printable(message)
        self.stage = stage


CHECK_OUT_OF_TIME = "the time limit passed while the task's code checked the output"
"""The message of `timed_out` if a check of an output did not end in time."""


class OutOfTimeError(VerdictError):
    """The time of the whole evaluation ended while the task's own code was running."""


class RivalFailedError(Exception):
    """The rival, not the submission, failed."""

    def __init__(self, error: VerdictError) -> None:
        super().__init__(error.message)
        self.error = error


class RivalBrokeContextError(Exception):
    """An output of the rival broke the judge's CUDA context, which ends the evaluation."""

    def __init__(self, error: VerdictError) -> None:
        super().__init__(error.message)
        self.error = error


class MachineError(Exception):
    """The machine, not the submission, prevents a correct evaluation."""


def error_of_exit(status: int) -> VerdictError:
    """Return the verdict for a candidate's exit.

    `status` is what `os.waitstatus_to_exitcode` returns: negative for a signal.
    """
    if status >= 0:
        return VerdictError(Verdict.CRASHED, f"the process exited with status {status}")
    if status == -signal.SIGKILL:
        return VerdictError(Verdict.MEMORY_EXCEEDED, "the system killed the process for memory")
    if status == -signal.SIGXFSZ:
        return VerdictError(Verdict.OUTPUT_EXCEEDED, "a file grew beyond the limit")
    names = {int(each): each.name for each in signal.Signals}  # real-time signals have no name
    name = names.get(-status, f"signal {-status}")
    return VerdictError(Verdict.CRASHED, f"the process was killed by {name}")


def words_of(error: BaseException) -> str:
    """Return the type and the text of an exception of the task, whose own code makes the text."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except (VerdictError, MachineError):  # such as the alarm at the end of the time
        raise
    except BaseException:  # noqa: BLE001 - it may raise any type
        return name


def file_at_fault(error: BaseException) -> str:
    """Return the file that raised an exception, or that a SyntaxError is about; "" if unknown."""
    if isinstance(error, SyntaxError):
        return error.filename or ""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename if frames else ""


def release_locals(error: BaseException | None) -> None:
    """Free what the variables of the frames that an exception went through still hold."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def as_task_error(step: str, call: Callable[[], _T]) -> _T:
    """Return what the call returns; any exception of the task becomes the verdict `task_error`."""
    try:
        return call()
    except (VerdictError, MachineError):  # such as the alarm at the end of the time
        raise
    except BaseException as error:
        traceback.print_exc()
        message = f"the task's {step} failed: {words_of(error)}"
        raise VerdictError(Verdict.TASK_ERROR, message) from error


STAGES = {
    CaseKind.TEST: Stage.TEST,
    CaseKind.BENCHMARK: Stage.TIMING,
    CaseKind.PROFILE: Stage.TIMING,
}
"""The stage in which a case of each kind can fail."""


@dataclass(slots=True)
class GradingResult:
    """The result of grading: the verdict, the stage that caused it, and every case."""

    verdict: Verdict = Verdict.PASSED
    stage: Stage | None = None
    message: str = ""
    cases: list[CaseResult] = field(default_factory=list)
    comparison: Comparison | None = None
    """The comparison with the request's rival; None if none was made."""
    cause: BaseException | None = None
    """What the error comes from that ended grading, such as an exception of the task's code."""

    @property
    def passed(self) -> bool:
        """Whether nothing has failed so far."""
        return self.verdict is Verdict.PASSED

    def fail(self, stage: Stage, error: VerdictError) -> None:
        """Record the verdict and the stage with which the evaluation ended."""
        self.verdict, self.message = error.verdict, error.message
        self.stage, self.cause = error.stage or stage, error.__cause__

    def replace_error(self, error: VerdictError) -> None:
        """Replace the verdict and the message of the case that failed."""
        self.verdict, self.message = error.verdict, error.message
        self.cases = [
            each.model_copy(update={"message": error.message})
            if each.status is CaseStatus.FAILED
            else each
            for each in self.cases
        ]


def skipped(kind: CaseKind, workload: Workload) -> CaseResult:
    """The result of a case that was not run because an earlier one ended the evaluation."""
    return CaseResult(spec=workload.spec, kind=kind, status=CaseStatus.SKIPPED)


def too_much_printed(limit: int) -> VerdictError:
    """Return the verdict of a process that printed more than `limit` bytes."""
    return VerdictError(
        Verdict.OUTPUT_EXCEEDED,
        f"more than {limit >> 10} KiB were written to stdout or stderr",
    )
