"""Findings on a task: the report of its check, and the findings that need no run."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.tasks.bundle import TASK_FILE, Solution
from bot.domain.tasks.yaml_document import refusal
from runners.contract.formula import module_tree
from runners.contract.task import ArgValue, TaskDefinition, TaskFormat, Workload
from runners.contract.verdict import Verdict


class Level(StrEnum):
    """How severe a finding is."""

    ERROR = "error"
    """The task must not be published with it."""
    WARNING = "warning"
    """The task works, but could be better."""
    INFO = "info"
    """Something that was done, or skipped with a reason."""


@dataclass(frozen=True, slots=True)
class GraderComparison:
    """What both graders say of one solution: each verdict, with its message in brackets.

    They agree if both let it pass, or if both refuse it.
    """

    is_right: bool
    """Whether the solution must pass."""
    native: str
    popcorn: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark on one file of the task."""

    level: Level
    file: str
    message: str
    comparison: GraderComparison | None = None
    """What both graders say of the solution, if both have run it."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """All findings on a task on one GPU type.

    `obstacle` says why its solutions could not be run; empty when they were. `grading` says which
    grader grades the task and why, and `uncompared` why the other one did not run its solutions.
    """

    task: str
    gpu: str
    findings: tuple[Finding, ...]
    obstacle: str = ""
    grading: str = ""
    uncompared: str = ""
    undecided: bool = False
    """Whether the graders disagree and the creator has not chosen one."""
    nothing_run: bool = False
    """Whether the task has no solution and no template that could be run."""

    @property
    def comparisons(self) -> tuple[GraderComparison, ...]:
        """Return what both graders say of each solution that both have run."""
        return tuple(each.comparison for each in self.findings if each.comparison is not None)

    @property
    def was_run(self) -> bool:
        """Return whether the task's solutions were run."""
        return not self.obstacle

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the findings that prevent publishing."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)

    @property
    def ok(self) -> bool:
        """Return whether the task was run and may be published."""
        return self.was_run and not self.errors


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One run of a check: waiting, at a stage, or ended with its finding.

    `name` is the solution's path, or a description of another run. `done` of `total` counts cases.
    """

    gpu: str
    name: str
    stage: str | None = None
    done: int = 0
    total: int = 0
    finding: Finding | None = None
    note: str = ""
    """Why it does not continue yet; usually empty."""


LONGEST_FAULT = 300
"""The most characters of an error that are shown."""


def parse_python(text: str, file: str) -> ast.Module:
    """Return the syntax tree; UserError with the line when it does not parse."""
    try:
        return module_tree(text)
    except SyntaxError as error:
        raise refusal(file, error.lineno or 1, f"Python cannot parse this: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise refusal(file, 1, "Python cannot parse this file") from error


def python_fault(source: str) -> str | None:
    """Return the syntax error and its line; None when Python can parse the source.

    Parsed as bytes, like a file: a first line may declare an encoding.
    """
    try:
        ast.parse(source.encode(errors="surrogatepass"))
    except SyntaxError as error:
        return f"{error.msg[:LONGEST_FAULT]} (line {error.lineno or 1})"
    except (ValueError, RecursionError):
        return None
    return None


def defined_names(tree: ast.Module) -> frozenset[str]:
    """Return the names bound at the module's top level, also under `if`, `try` and `with`."""
    return frozenset(name for statement in _top(tree.body) for name in _bound(statement))


def _top(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements in any order, without recursion, since a chain of `elif` may be long."""
    pending = list(body)
    while pending:
        statement = pending.pop()
        yield statement
        for block in _blocks(statement):
            pending += block


def _blocks(statement: ast.stmt) -> tuple[Sequence[ast.stmt], ...]:
    """Return the nested statements that still run at the module's top level."""
    match statement:
        case ast.If(body=body, orelse=orelse):
            return (body, orelse)
        case ast.With(body=body):
            return (body,)
        case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
            return (body, *(handler.body for handler in handlers), orelse, last)
        case _:
            return ()


def _bound(statement: ast.stmt) -> Iterable[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Assign(targets=targets):
            return _assigned(targets)
        case ast.AnnAssign(target=target, value=ast.expr()):
            return _assigned([target])
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return [alias.asname or alias.name for alias in names]
        case _:
            return ()


def _assigned(targets: Iterable[ast.expr]) -> Iterator[str]:
    """Yield the names among the targets, also in `a, b = ...`; not the `x` of `x.a = ...`."""
    for node in (node for target in targets for node in ast.walk(target)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def wants_cuda(tree: ast.Module) -> bool:
    """Return whether the code names CUDA as a device without a check that it is available."""
    return any(_is_cuda(node) for node in _unguarded(tree))


def _is_cuda(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return text == "cuda" or (text.startswith("cuda:") and text[5:].isdigit())
        case ast.Call(func=ast.Attribute(attr="cuda")):
            return True
        case _:
            return False


def _unguarded(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes except comparisons and code under a test of `is_available`."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        for child in ast.iter_child_nodes(node):
            guarded = isinstance(child, ast.If | ast.IfExp) and _checks_for_cuda(child.test)
            if not guarded and not isinstance(child, ast.Compare):
                pending.append(child)


def _checks_for_cuda(test: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr in ("is_available", "device_count")
        for node in ast.walk(test)
    )


_MOST_CASES = 100
"""The most tests, and benchmarks, that are compared pairwise."""


def lint(task: TaskDefinition, shipped: tuple[Solution, ...]) -> tuple[Finding, ...]:
    """Return every static finding on the task."""
    remarks = (
        *_on_description(task),
        *_on_solutions(shipped),
        *(_on_cases(task) if task.format is TaskFormat.KERNEL else ()),
    )
    return tuple(Finding(Level.WARNING, TASK_FILE, remark) for remark in remarks)


def _on_cases(task: TaskDefinition) -> Iterator[str]:
    """Yield findings from the cases' sizes; KernelBench problems have none."""
    yield from _on_repeats("tests", task.tests)
    yield from _on_repeats("benchmarks", task.benchmarks)
    yield from _on_small_benchmarks(task)
    yield from _on_even_sizes(task)


def _on_description(task: TaskDefinition) -> Iterator[str]:
    if not any(line.startswith("# ") for line in task.description.splitlines()):
        yield "the description has no heading; begin it with '# ' and the task's title"
    if not task.templates:
        yield "there is no template; add a starter file to help people get started"


def _on_solutions(shipped: tuple[Solution, ...]) -> Iterator[str]:
    if not any(solution.expect is Verdict.PASSED for solution in shipped):
        yield (
            "there is no solution under solutions/correct, so nothing shows that the task can be "
            "solved"
        )
    if not any(solution.expect is not Verdict.PASSED for solution in shipped):
        yield (
            "there is no solution under solutions/wrong, so nothing shows that the check rejects "
            "wrong results"
        )


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
            yield f"the benchmark {benchmark.spec!r} is not larger than the test {covering.spec!r}"


def _on_even_sizes(task: TaskDefinition) -> Iterator[str]:
    sizes = [value for test in task.tests for value in _sizes(test).values()]
    if sizes and all(size % 16 == 0 for size in sizes):
        yield "every size in the tests is a multiple of 16; add one that is not"


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
