"""What the end of a task's own evaluation means, where it came to no answer."""

from runners.contract.task import TaskDefinition
from runners.contract.verdict import Stage, Verdict
from runners.harness.sandbox.diagnostics import failed_build
from runners.harness.verdicts import VerdictError, ruling_of_end

RAN = frozenset({0, 112})
"""The exit statuses of an evaluation that came to its end: all right, or some case failed."""
_TASKS_OWN = {
    2: "did not take its arguments",
    111: "could not open its line to the judge",
    113: "could not read its cases",
}
_NOT_BUILT = ("SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError")

_EXTENSION = "Error building extension"
"""What torch says of a submission's inline C++ or CUDA which does not compile."""


def own_evaluation(task: TaskDefinition) -> str:
    """The file of the task's own that people know its evaluation by."""
    own = (name for name in task.config.sources if name != task.submission_file)
    return next(own, "eval.cu") if task.is_program else task.config.main


def ruling_of_exit(status: int, log: str, task: TaskDefinition) -> VerdictError:
    """What an evaluation means that did not come to its end.

    Its log is believed in one thing: which kind of failure this was.
    """
    if status in _TASKS_OWN:
        return VerdictError(
            Verdict.TASK_ERROR, f"the task's {own_evaluation(task)} {_TASKS_OWN[status]}"
        )
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    said = failed_build(log) if _EXTENSION in log else None
    last = said.reason if said else lines[-1] if lines else "it said nothing"
    last = last[:1000]
    if status < 0:
        return _ruling_of_signal(status, last) if task.is_program else ruling_of_end(status)
    refused = said is not None or last.startswith(_NOT_BUILT)
    built = task.is_program or not (task.submission_file in log and refused)
    words = f"the evaluation exited with status {status}: {last}"
    return (
        VerdictError(Verdict.CRASHED, words)
        if built
        else VerdictError(Verdict.BUILD_FAILED, last, Stage.BUILD)
    )


def _ruling_of_signal(status: int, last: str) -> VerdictError:
    """What a program's death means: an exception that nobody caught is told by its last words."""
    ruling = ruling_of_end(status)
    if ruling.verdict is not Verdict.CRASHED:
        return ruling
    return VerdictError(ruling.verdict, f"{ruling.message}: {last}")
