"""Checks a task before people meet it: its lints, its own solutions, and degenerate answers."""

import asyncio
import uuid
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass

from bot.domain.degenerate import DEGENERATE, degenerate_source
from bot.domain.requirements import missing, missing_for
from bot.domain.solutions import Solution, solutions
from bot.domain.task_bundle import TASK_FILE, TaskBundle
from bot.domain.task_lint import lint
from bot.domain.task_report import Finding, Level, TaskReport
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress, RoundPolicy
from runners.contract.runner import Capabilities, Runner
from runners.contract.task import Language, Mode, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict

ROUNDS = RoundPolicy(looks=(2,), samples=3)
"""Enough to meet each timed benchmark with fresh inputs; the times are not wanted."""

_MESSAGE_MAX = 400


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where the task is run."""

    runner: Runner
    task: TaskDefinition
    gpu: str


async def check_on(
    runners: Sequence[Runner], bundle: TaskBundle, task: TaskDefinition, gpus: Sequence[str]
) -> tuple[TaskReport, ...]:
    """A report for each GPU type, made by that runner which lacks least for the task on it."""
    offers = [await runner.capabilities() for runner in runners]
    reports = []
    for gpu in gpus:
        lacks = [len(missing(offer, task, gpu)) for offer in offers]
        nearest = runners[lacks.index(min(lacks))]
        reports.append(await check_task(nearest, bundle, task, gpu))
    return tuple(reports)


async def check_task(
    runner: Runner, bundle: TaskBundle, task: TaskDefinition, gpu: str
) -> TaskReport:
    """Lint the task and run what it ships; RunnerError when the runner fails."""
    shipped = solutions(bundle)
    static = lint(task, shipped)
    capabilities = await runner.capabilities()
    lacks = missing(capabilities, task, gpu)
    if lacks:
        obstacle = f"missing {', '.join(lacks)}; check it beside a runner that has it"
        return TaskReport(task.name, gpu, static, obstacle)
    bench = _Bench(runner, task, gpu)
    executed = await _together(tuple(_steps(bench, shipped, capabilities)))
    return TaskReport(task.name, gpu, (*static, *executed))


def _steps(
    bench: _Bench, shipped: tuple[Solution, ...], has: Capabilities
) -> Iterator[Coroutine[None, None, Finding]]:
    """Every run of the check, not begun yet."""
    for solution in shipped:
        yield _check_solution(bench, solution, missing_for(has, solution, bench.gpu))
    for file in sorted(set(bench.task.templates.values())):
        yield _check_template(bench, file)
    right = (each for each in shipped if each.expect is Verdict.PASSED)
    usable = next((each for each in right if not missing_for(has, each, bench.gpu)), None)
    if usable is not None:
        yield from _steps_with(bench, usable)


def _steps_with(bench: _Bench, right: Solution) -> Iterator[Coroutine[None, None, Finding]]:
    """The runs that need a right solution to begin with."""
    task = bench.task
    if task.timed(Mode.RANKED) != task.benchmarks:
        yield _check_benchmarks(bench, right)
    if task.lang is Language.PYTHON and task.format is TaskFormat.KERNEL:
        yield from (_check_degenerate(bench, right, answer) for answer in DEGENERATE)


async def _together(steps: tuple[Coroutine[None, None, Finding], ...]) -> tuple[Finding, ...]:
    """Run every step at once, for the runner knows its own slots; the first error stops all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in steps]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return tuple(task.result() for task in tasks)


async def _check_solution(bench: _Bench, solution: Solution, lacks: tuple[str, ...]) -> Finding:
    if lacks:
        words = f"skipped: it needs {', '.join(lacks)}, not to be had on {bench.gpu} here"
        return Finding(
            Level.INFO, solution.name, f"{words}; a check beside a runner with it runs it"
        )
    evaluation = await _evaluate(bench, solution.source, Mode.RANKED)
    if evaluation.verdict is solution.expect:
        return Finding(Level.INFO, solution.name, f"{evaluation.verdict.value}, as expected")
    return Finding(
        Level.ERROR,
        solution.name,
        f"got {_spell(evaluation)}; {solution.expect.value} is expected",
    )


async def _check_template(bench: _Bench, file: str) -> Finding:
    evaluation = await _evaluate(bench, bench.task.files[file], Mode.TEST)
    if evaluation.verdict is Verdict.PASSED:
        return Finding(Level.INFO, file, "the template runs and passes")
    if evaluation.verdict is Verdict.WRONG_ANSWER:
        return Finding(Level.INFO, file, "the template runs; its answer is still to be written")
    return Finding(Level.ERROR, file, f"the template does not run: {_spell(evaluation)}")


async def _check_benchmarks(bench: _Bench, solution: Solution) -> Finding:
    """Run the benchmarks that score nothing too: people meet them in benchmark mode."""
    evaluation = await _evaluate(bench, solution.source, Mode.BENCHMARK)
    if evaluation.verdict is Verdict.PASSED:
        return Finding(
            Level.INFO, solution.name, "passes every benchmark, also those not ranked by"
        )
    words = f"in benchmark mode got {_spell(evaluation)}; passed is expected"
    return Finding(Level.ERROR, solution.name, words)


async def _check_degenerate(bench: _Bench, solution: Solution, answer: str) -> Finding:
    source = degenerate_source(solution.source, answer)
    evaluation = await _evaluate(bench, source, Mode.TEST)
    if evaluation.verdict is Verdict.WRONG_ANSWER:
        return Finding(Level.INFO, TASK_FILE, f"an answer of {answer} is refused")
    if evaluation.verdict is Verdict.PASSED:
        message = (
            f"an answer of {answer} passes every test; tighten the tolerance of "
            "check_implementation, or add a test whose right answer is not constant"
        )
        return Finding(Level.ERROR, TASK_FILE, message)
    return Finding(Level.ERROR, TASK_FILE, f"an answer of {answer} gave {_spell(evaluation)}")


async def _evaluate(bench: _Bench, source: str, mode: Mode) -> Evaluation:
    request = EvaluationRequest(
        request_id=f"check-{uuid.uuid4().hex}",
        task=bench.task,
        source=source,
        mode=mode,
        gpu=bench.gpu,
        rounds=ROUNDS,
    )
    call = await bench.runner.start(request)
    try:
        return await bench.runner.wait(call, _ignore)
    except asyncio.CancelledError:
        await bench.runner.cancel(call)
        raise


def _ignore(progress: Progress) -> None:
    """Steps of a check are not shown; its findings are."""


def _spell(evaluation: Evaluation) -> str:
    case = next((case for case in evaluation.cases if case.message), None)
    detail = evaluation.message or (f"{case.spec}: {case.message}" if case else "")
    text = f"{evaluation.verdict.value} ({detail})" if detail else evaluation.verdict.value
    return text if len(text) <= _MESSAGE_MAX else text[: _MESSAGE_MAX - 3] + "..."
