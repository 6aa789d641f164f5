"""How grading ends: the verdict that ended it, or what it found."""

import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from runners.contract.evaluation import CaseKind, CaseResult, CaseStatus
from runners.contract.task import Workload
from runners.contract.verdict import Stage, Verdict

_T = TypeVar("_T")


class VerdictError(Exception):
    """Raised to end the evaluation with `verdict`; `message` may be shown in public modes.

    `stage` is given where only the raiser knows it.
    """

    def __init__(self, verdict: Verdict, message: str, stage: Stage | None = None) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message
        self.stage = stage


class MachineError(Exception):
    """The machine, and not the submission, keeps an evaluation from an honest end."""


def ruling_of_end(status: int) -> VerdictError:
    """What a candidate's end means; `status` as `os.waitstatus_to_exitcode` gives it."""
    if status >= 0:
        return VerdictError(Verdict.CRASHED, f"the process exited with status {status}")
    if status == -signal.SIGKILL:
        return VerdictError(Verdict.MEMORY_EXCEEDED, "the system killed the process for memory")
    if status == -signal.SIGXFSZ:
        return VerdictError(Verdict.OUTPUT_EXCEEDED, "a file grew beyond the limit")
    names = {int(each): each.name for each in signal.Signals}  # real-time signals have none
    name = names.get(-status, f"signal {-status}")
    return VerdictError(Verdict.CRASHED, f"the process was killed by {name}")


def as_task_error(step: str, call: Callable[[], _T]) -> _T:
    """Return what the call returns; whatever it raises becomes the verdict `task_error`."""
    try:
        return call()
    except VerdictError:
        raise
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        raise VerdictError(Verdict.TASK_ERROR, f"the task's {step} failed: {reason}") from error


STAGES = {
    CaseKind.TEST: Stage.TEST,
    CaseKind.BENCHMARK: Stage.TIMING,
    CaseKind.PROFILE: Stage.TIMING,
}
"""The stage in which a case of each kind can fail."""


@dataclass(slots=True)
class GradingResult:
    """What grading found: the verdict, where it fell, and every case."""

    verdict: Verdict = Verdict.PASSED
    stage: Stage | None = None
    message: str = ""
    cases: list[CaseResult] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing has failed so far."""
        return self.verdict is Verdict.PASSED

    def fail(self, stage: Stage, ruling: VerdictError) -> None:
        """Note where and how the evaluation ended."""
        self.verdict, self.message = ruling.verdict, ruling.message
        self.stage = ruling.stage or stage


def skipped(kind: CaseKind, workload: Workload) -> CaseResult:
    """A case to which it did not come, because an earlier one had ended the evaluation."""
    return CaseResult(spec=workload.spec, kind=kind, status=CaseStatus.SKIPPED)
