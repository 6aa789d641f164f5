"""The report of what a task's zip or folder holds, before anything of it is run."""

from bot.domain.solutions import solutions
from bot.domain.task_lint import lint
from bot.domain.tasks.bundle import TaskBundle
from bot.domain.tasks.task_file import ParsedTask
from bot.reports.blocks import Block, Report, Text
from runners.contract.verdict import Verdict


def found_report(bundle: TaskBundle, parsed: ParsedTask) -> Report:
    """How much there is of everything, and what could be better about it."""
    task, shipped = parsed.task, solutions(bundle)
    right = sum(each.expect is Verdict.PASSED for each in shipped)
    counts = (
        _counted(len(task.tests), "test"),
        _counted(len(task.benchmarks), "benchmark"),
        _counted(len(task.files), "file"),
        f"{right} right and {_counted(len(shipped) - right, 'wrong solution')}",
    )
    blocks: list[Block] = [Text(f"{', '.join(counts)}; ranked by {task.ranking_by}")]
    remarks = (each.message for each in lint(task, shipped))
    blocks += [Text(f"warning: {words}") for words in (*parsed.warnings, *remarks)]
    return Report(f"Task {task.name}", tuple(blocks))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
