"""What a check says of its runs: whether each got the verdict that it must get."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from bot.domain.requirements import missing
from bot.domain.tasks.bundle import TASK_FILE, Solution, TaskBundle
from bot.domain.tasks.grading import Grading
from bot.domain.tasks.lint import Finding, GraderComparison, Level
from runners.contract.evaluation import Evaluation
from runners.contract.runner import Capabilities
from runners.contract.task import Grader, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict

ELSEWHERE = "check it on a machine with a runner that has it"
_MESSAGE_MAX = 400
_ABSENT = re.compile(r"ModuleNotFoundError: No module named '(\w{1,64})")
_ADVICE = {
    TaskFormat.KERNEL: (
        "tighten the tolerance of check_implementation, or add a test whose correct answer is "
        "not constant"
    ),
    TaskFormat.KERNELBENCH: (
        "the Model's answer is nearly constant, so it cannot be used for a ranking"
    ),
}
_OWN_ADVICE = "make the task's own evaluation reject it"


def in_words(evaluation: Evaluation) -> str:
    """Return the verdict and, in brackets, its message or that of the first case with one."""
    case = next((case for case in evaluation.cases if case.message), None)
    detail = evaluation.message or (f"{case.spec}: {case.message}" if case else "")
    text = f"{evaluation.verdict.value} ({detail})" if detail else evaluation.verdict.value
    return text if len(text) <= _MESSAGE_MAX else text[: _MESSAGE_MAX - 3] + "..."


def absent_module(task: TaskDefinition, evaluation: Evaluation) -> str:
    """Return the module that the task's own files import and the run did not find; "" if none."""
    messages = (evaluation.message, *(case.message for case in evaluation.cases))
    found = next(filter(None, map(_ABSENT.search, messages)), None)
    if found is None:
        return ""
    imports = re.compile(rf"^[ \t]*(?:from|import)[ \t]+{found[1]}\b", re.MULTILINE)
    own = (text for name, text in task.files.items() if name not in task.templates.values())
    return found[1] if any(map(imports.search, own)) else ""


def in_words_absent(bundle: TaskBundle, module: str) -> str:
    """Return why the task cannot be run without a module that it imports."""
    if bundle.locate(f"{module}.py") in bundle.files:
        return f"the task imports {module}.py, which task.yml does not list under files"
    return f"missing library {module}; {ELSEWHERE}"


def any_of(verdicts: Collection[Verdict]) -> str:
    """Return the verdicts in words, joined by "or"."""
    return " or ".join(sorted(verdict.value for verdict in verdicts))


def comparable(
    task: TaskDefinition, grading: Grading, capabilities: Capabilities, gpu: str
) -> tuple[TaskDefinition | None, str]:
    """Return the task under the other grader; None and why if the runner cannot compare both."""
    other = grading.other_task(task)
    if other is None:
        return None, ""
    lacks = missing(capabilities, other, gpu)
    return (None, f"missing {', '.join(lacks)} on {gpu}") if lacks else (other, "")


def solution_finding(
    solution: Solution,
    tasks: Sequence[TaskDefinition],
    evaluations: Sequence[Evaluation],
    difference: Level,
) -> Finding:
    """Return whether the solution got the verdict that it must get, and whether both agree.

    The first of the tasks has the grader that grades; a second one has the other grader. A
    difference between them has at least the level `difference`.
    """
    found = _finding(solution, evaluations[0])
    if len(evaluations) == 1:
        return found
    by = {task.grader: each for task, each in zip(tasks, evaluations, strict=True)}
    native, popcorn = in_words(by[Grader.NATIVE]), in_words(by[Grader.POPCORN])
    agrees = _agree([each.verdict for each in evaluations])
    comparison = GraderComparison(solution.expect is Verdict.PASSED, native, popcorn, agrees)
    if agrees:
        return replace(found, message=f"{found.message}; both graders agree", comparison=comparison)
    words = (
        f"the graders disagree; Podium's judge: {native}; the task's own evaluation: {popcorn}; "
        f"expected: {solution.expect.value}"
    )
    if found.level is Level.ERROR and difference is not Level.ERROR:
        words = f"by the chosen grader it {found.message}; {words}"
    level = found.level if found.level is Level.ERROR else difference
    return Finding(level, solution.name, words, comparison)


def _finding(solution: Solution, evaluation: Evaluation) -> Finding:
    if evaluation.verdict is solution.expect:
        return Finding(Level.INFO, solution.name, f"{evaluation.verdict.value}, as expected")
    words = f"got {in_words(evaluation)}, expected {solution.expect.value}"
    return Finding(Level.ERROR, solution.name, words)


def _agree(verdicts: Sequence[Verdict]) -> bool:
    """Return whether all pass, or all refuse; a `task_error` says nothing of the solution."""
    passed = {each is Verdict.PASSED for each in verdicts}
    return len(passed) == 1 and Verdict.TASK_ERROR not in verdicts


def constant_finding(answer: str, evaluation: Evaluation, task: TaskDefinition) -> Finding:
    """Return what to say of a kernel whose every answer is this one; no task may accept it."""
    if evaluation.verdict is Verdict.WRONG_ANSWER:
        return Finding(Level.INFO, TASK_FILE, f"an answer of {answer} is rejected")
    if evaluation.verdict is Verdict.PASSED:
        advice = _OWN_ADVICE if task.grader is Grader.POPCORN else _ADVICE[task.format]
        message = f"an answer of {answer} passes every test; {advice}"
        return Finding(Level.ERROR, TASK_FILE, message)
    return Finding(Level.ERROR, TASK_FILE, f"an answer of {answer} gave {in_words(evaluation)}")
