"""How a step deep inside an evaluation ends it: with a verdict, told once."""

import signal
import traceback
from collections.abc import Callable
from typing import TypeVar

from runners.contract.verdict import Stage, Verdict

_T = TypeVar("_T")


class Ruling(Exception):  # noqa: N818 - a verdict is not an error of ours
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


def ruling_of_end(status: int) -> Ruling:
    """What a candidate's end means; `status` as `os.waitstatus_to_exitcode` gives it."""
    if status >= 0:
        return Ruling(Verdict.CRASHED, f"the process exited with status {status}")
    if status == -signal.SIGKILL:
        return Ruling(Verdict.MEMORY_EXCEEDED, "the system killed the process for memory")
    if status == -signal.SIGXFSZ:
        return Ruling(Verdict.OUTPUT_EXCEEDED, "a file grew beyond the limit")
    names = {int(each): each.name for each in signal.Signals}  # real-time signals have none
    name = names.get(-status, f"signal {-status}")
    return Ruling(Verdict.CRASHED, f"the process was killed by {name}")


def as_task_error(step: str, call: Callable[[], _T]) -> _T:
    """Return what the call returns; whatever it raises becomes the verdict `task_error`."""
    try:
        return call()
    except Ruling:
        raise
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        raise Ruling(Verdict.TASK_ERROR, f"the task's {step} failed: {reason}") from error
