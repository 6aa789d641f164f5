"""Remarks on a task that need no run: cases, description, template and shipped solutions."""

from collections.abc import Iterator

from bot.domain.solutions import Solution
from bot.domain.task_report import Finding, Level
from bot.domain.tasks.bundle import TASK_FILE
from runners.contract.task import ArgValue, TaskDefinition, TaskFormat, Workload
from runners.contract.verdict import Verdict

_MOST_CASES = 100
"""Of tests and of benchmarks that are compared with each other, each with each."""


def lint(task: TaskDefinition, shipped: tuple[Solution, ...]) -> tuple[Finding, ...]:
    """Every static finding on the task."""
    remarks = (
        *_on_words(task),
        *_on_solutions(shipped),
        *(_on_cases(task) if task.format is TaskFormat.KERNEL else ()),
    )
    return tuple(Finding(Level.WARNING, TASK_FILE, remark) for remark in remarks)


def _on_cases(task: TaskDefinition) -> Iterator[str]:
    """What their sizes tell; the cases of a KernelBench problem have none."""
    yield from _on_repeats("tests", task.tests)
    yield from _on_repeats("benchmarks", task.benchmarks)
    yield from _on_small_benchmarks(task)
    yield from _on_even_sizes(task)


def _on_words(task: TaskDefinition) -> Iterator[str]:
    if not any(line.startswith("# ") for line in task.description.splitlines()):
        yield "the description has no heading; begin it with '# ' and the task's title"
    if not task.templates:
        yield "there is no template; a starter file helps people to begin"


def _on_solutions(shipped: tuple[Solution, ...]) -> Iterator[str]:
    if not any(solution.expect is Verdict.PASSED for solution in shipped):
        yield "no solution under solutions/correct proves that the task can be solved"
    if not any(solution.expect is not Verdict.PASSED for solution in shipped):
        yield "no solution under solutions/wrong proves that the check refuses anything"


def _on_repeats(kind: str, cases: tuple[Workload, ...]) -> Iterator[str]:
    cases = cases[:_MOST_CASES]
    shapes = [tuple(_shape(case).items()) for case in cases]
    repeated = [case.spec for i, case in enumerate(cases) if shapes[i] in shapes[:i]]
    if repeated:
        yield f"{kind}: {repeated[0]!r} repeats the arguments of an earlier case"


def _on_small_benchmarks(task: TaskDefinition) -> Iterator[str]:
    for benchmark in task.benchmarks[:_MOST_CASES]:
        covering = next(
            (test for test in task.tests[:_MOST_CASES] if _covers(test, benchmark)), None
        )
        if covering is not None:
            yield f"the benchmark {benchmark.spec!r} is no larger than the test {covering.spec!r}"


def _on_even_sizes(task: TaskDefinition) -> Iterator[str]:
    sizes = [value for test in task.tests for value in _sizes(test).values()]
    if sizes and all(size % 16 == 0 for size in sizes):
        yield "every size in the tests is a multiple of 16; add one that leaves a rest"


def _shape(case: Workload) -> dict[str, ArgValue]:
    return {name: value for name, value in case.args.items() if name != "seed"}


def _sizes(case: Workload) -> dict[str, int]:
    return {
        name: value
        for name, value in _shape(case).items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


def _covers(test: Workload, benchmark: Workload) -> bool:
    large, small = _sizes(test), _sizes(benchmark)
    return bool(small) and all(large.get(name, 0) >= size for name, size in small.items())
