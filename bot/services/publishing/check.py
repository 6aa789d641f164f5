"""Checks a task before publication: lints it; runs its solutions, templates, constant answers."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.requirements import ELSEWHERE, absent_module, missing, missing_for, without_module
from bot.domain.tasks.bundle import TASK_FILE, Solution, TaskBundle, solutions
from bot.domain.tasks.grading import NO_PROGRAM, Grading
from bot.domain.tasks.lint import CheckStep, Finding, GraderComparison, Level, TaskReport, lint
from bot.domain.tasks.template import STUB_VERDICTS, Template, templates
from bot.services.publishing import constant_answers
from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress, RoundPolicy
from runners.contract.runner import Capabilities, ProgressSink, Runner
from runners.contract.task import Grader, Mode, TaskDefinition
from runners.contract.verdict import VERDICT_WORDS, Verdict
from runners.languages import spec_of

ROUNDS = RoundPolicy(looks=(2,), samples=3)
"""Enough rounds to run each timed benchmark on fresh inputs; the times are discarded."""
AT_ONCE = 16
"""The most runs of a check that wait for a runner at the same time, for each GPU type."""
_MESSAGE_MAX = 400

T = TypeVar("T")
Watch: TypeAlias = Callable[[CheckStep], None]


@dataclass(frozen=True, slots=True)
class _TestBench:
    """Where the task is run, and for which board.

    `other` is the same task under the other grader, `difference` the level of a difference.
    """

    runner: Runner
    task: TaskDefinition
    gpu: str
    board: str
    other: TaskDefinition | None
    difference: Level


@dataclass(frozen=True, slots=True)
class _Step:
    """One run of the check, not started yet; `run` takes the sink for its progress."""

    name: str
    run: Callable[[ProgressSink], Awaitable[Finding]]


class _AbsentModuleError(Exception):
    """The runner did not find a module that the task's own files import."""


def ignore_step(step: CheckStep) -> None:
    """Ignore the step: without an observer, the findings are only in the report."""


async def check_on(  # noqa: PLR0913 - what is run, and how
    runners: Sequence[Runner],
    bundle: TaskBundle,
    task: TaskDefinition,
    gpus: Sequence[str],
    *,
    board: str | None = None,
    watch: Watch = ignore_step,
    grading: Grading = NO_PROGRAM,
) -> tuple[TaskReport, ...]:
    """Return a report for each GPU type, from the runner that meets most of its requirements.

    `board` is the leaderboard's name, by default the task's. `watch` is called when each run
    starts, makes progress and has its finding; `grading` says whether the other grader runs
    the solutions too. UserError when there is no runner.
    """
    if not runners:
        raise UserError(
            "no-runner",
            f"{task.name}: no runner is available to run its solutions; start a worker with "
            "`podium worker`, then submit the task again",
        )
    offers = [await runner.capabilities() for runner in runners]
    checks = []
    for gpu in gpus:
        missing_parts = [len(missing(offer, task, gpu)) for offer in offers]
        runner = runners[missing_parts.index(min(missing_parts))]
        checks.append(
            check_task(runner, bundle, task, gpu, board=board, watch=watch, grading=grading)
        )
    return await _all_of(checks)


async def check_task(  # noqa: PLR0913 - what is run, and how
    runner: Runner,
    bundle: TaskBundle,
    task: TaskDefinition,
    gpu: str,
    *,
    board: str | None = None,
    watch: Watch = ignore_step,
    grading: Grading = NO_PROGRAM,
) -> TaskReport:
    """Lint the task and run what it ships; RunnerError when the runner fails."""
    shipped, static = await asyncio.to_thread(_lint, bundle, task)
    capabilities = await runner.capabilities()
    missing_parts = missing(capabilities, task, gpu)
    if missing_parts:
        obstacle = f"missing {', '.join(missing_parts)}; {ELSEWHERE}"
        return TaskReport(task.name, gpu, static, obstacle)
    other, uncompared = comparable(task, grading, capabilities, gpu)
    level = Level.ERROR if grading.is_open else Level.WARNING
    bench = _TestBench(runner, task, gpu, board or task.name, other, level)
    steps = tuple(_steps(bench, shipped, capabilities))
    try:
        executed = await _run_steps(gpu, steps, watch)
    except _AbsentModuleError as error:
        return TaskReport(task.name, gpu, static, without_module(bundle, str(error)))
    found, nothing_run = (*static, *executed), not steps
    return TaskReport(task.name, gpu, found, uncompared=uncompared, nothing_run=nothing_run)


def _lint(
    bundle: TaskBundle, task: TaskDefinition
) -> tuple[tuple[Solution, ...], tuple[Finding, ...]]:
    """Return the solutions and the findings; called in a thread, because there may be megabytes."""
    shipped = solutions(bundle)
    return shipped, lint(task, shipped)


def _steps(
    bench: _TestBench, shipped: tuple[Solution, ...], capabilities: Capabilities
) -> Iterator[_Step]:
    """Yield every run of the check, not started yet."""
    for solution in shipped:
        missing_parts = missing_for(capabilities, solution, bench.gpu)
        yield _Step(solution.name, partial(_check_solution, bench, solution, missing_parts))
    for file, template in templates(bench.task, bench.board).items():
        yield _Step(file, partial(_check_template, bench, file, template))
    correct = (each for each in shipped if each.expect is Verdict.PASSED)
    usable = next(
        (each for each in correct if not missing_for(capabilities, each, bench.gpu)), None
    )
    if usable is not None:
        yield from _steps_with(bench, usable)


def _steps_with(bench: _TestBench, correct: Solution) -> Iterator[_Step]:
    """Yield the runs that need a correct solution."""
    task = bench.task
    if task.timed(Mode.RANKED) != task.benchmarks:
        name = f"{correct.name}, every benchmark"
        yield _Step(name, partial(_check_benchmarks, bench, correct))
    if spec_of(task.lang).constant_answers:
        for answer in constant_answers.answers_for(task.format):
            name = f"an answer of {answer}"
            yield _Step(name, partial(_check_constant_answer, bench, correct, answer))


async def _run_steps(gpu: str, steps: tuple[_Step, ...], watch: Watch) -> tuple[Finding, ...]:
    """Run all steps at once, limited by the runner's slots; the first error stops all."""
    for step in steps:
        watch(CheckStep(gpu, step.name))
    limit = asyncio.Semaphore(AT_ONCE)
    return await _all_of([_run_step(gpu, step, watch, limit) for step in steps])


async def _all_of(work: Sequence[Coroutine[None, None, T]]) -> tuple[T, ...]:
    """Run all at once; the first error stops the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return tuple(task.result() for task in tasks)


async def _run_step(gpu: str, step: _Step, watch: Watch, limit: asyncio.Semaphore) -> Finding:
    def report(progress: Progress) -> None:
        counts = progress.done, progress.total
        watch(CheckStep(gpu, step.name, progress.stage.value, *counts, note=progress.note))

    async with limit:
        finding = await step.run(report)
    watch(CheckStep(gpu, step.name, finding=finding))
    return finding


async def _check_solution(
    bench: _TestBench, solution: Solution, missing_parts: tuple[str, ...], report: ProgressSink
) -> Finding:
    if missing_parts:
        words = f"skipped: it needs {', '.join(missing_parts)}, not available on {bench.gpu} here"
        return Finding(Level.INFO, solution.name, f"{words}; {ELSEWHERE}")
    tasks = (bench.task, *(() if bench.other is None else (bench.other,)))
    evaluations = [
        await _evaluate(replace(bench, task=task), solution.source, Mode.RANKED, report)
        for task in tasks
    ]
    return solution_finding(solution, tasks, evaluations, bench.difference)


async def _check_template(
    bench: _TestBench, file: str, template: Template, report: ProgressSink
) -> Finding:
    """Submit the unchanged template, as a user might."""
    try:
        source, expected = _accepted_source(bench, template), template.expected
    except UserError as error:
        return Finding(Level.ERROR, file, f"the template would be rejected: {error.message}")
    evaluation = await _evaluate(bench, source, Mode.RANKED, report)
    verdict = evaluation.verdict
    if verdict in expected:
        stub = "" if verdict is Verdict.PASSED else ", as expected of this stub"
        return Finding(
            Level.INFO, file, f"the template is accepted: {VERDICT_WORDS[verdict]}{stub}"
        )
    words = f"the template got {in_words(evaluation)}, expected {any_of(expected)}"
    if expected == {Verdict.PASSED} and verdict in STUB_VERDICTS:
        words += f"; if it is a stub, add to its header: {template.marker} expect {verdict.value}"
    return Finding(Level.ERROR, file, words)


def _accepted_source(bench: _TestBench, template: Template) -> str:
    """Return the template's source as an accepted submission; UserError if it is refused."""
    file = acceptance.read_file(template.name, template.content)
    acceptance.board_name(bench.board, file.header)
    acceptance.check_language(file.name, bench.board, bench.task)
    acceptance.choose_gpus((), file.header.gpus, (bench.gpu,))
    return file.source


async def _check_benchmarks(bench: _TestBench, solution: Solution, report: ProgressSink) -> Finding:
    """Run also the benchmarks that are not scored, since benchmark mode runs them."""
    evaluation = await _evaluate(bench, solution.source, Mode.BENCHMARK, report)
    if evaluation.verdict is Verdict.PASSED:
        words = "passes every benchmark, including the unranked ones"
        return Finding(Level.INFO, solution.name, words)
    words = f"in benchmark mode got {in_words(evaluation)}, expected passed"
    return Finding(Level.ERROR, solution.name, words)


async def _check_constant_answer(
    bench: _TestBench, solution: Solution, answer: str, report: ProgressSink
) -> Finding:
    source = constant_answers.source_answering(solution.source, answer, bench.task.format)
    for where, task in constant_answers.tasks_to_try(bench.task):
        evaluation = await _evaluate(replace(bench, task=task), source, Mode.TEST, report)
        if evaluation.verdict not in constant_answers.refusals_of(answer):
            words = f"gave {in_words(evaluation)}"
            if evaluation.verdict is Verdict.PASSED:
                words = f"passes {where}; {constant_answers.advice_for(task, answer)}"
            level = Level.WARNING if answer == constant_answers.INPUT else Level.ERROR
            return Finding(level, TASK_FILE, f"an answer of {answer} {words}")
    return Finding(Level.INFO, TASK_FILE, f"an answer of {answer} is rejected")


async def _evaluate(bench: _TestBench, source: str, mode: Mode, report: ProgressSink) -> Evaluation:
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
        evaluation = await bench.runner.wait(call, report)
    except asyncio.CancelledError:
        await bench.runner.cancel(call)
        raise
    if module := await asyncio.to_thread(absent_module, bench.task, evaluation):
        raise _AbsentModuleError(module)
    return evaluation


def in_words(evaluation: Evaluation) -> str:
    """Return the verdict and, in brackets, its message or that of the first case with one."""
    case = next((case for case in evaluation.cases if case.message), None)
    detail = evaluation.message or (f"{case.spec}: {case.message}" if case else "")
    verdict = VERDICT_WORDS[evaluation.verdict]
    text = f"{verdict} ({detail})" if detail else verdict
    return text if len(text) <= _MESSAGE_MAX else text[: _MESSAGE_MAX - 3] + "..."


def any_of(verdicts: Collection[Verdict]) -> str:
    """Return the verdicts in words, joined by "or"."""
    return " or ".join(sorted(VERDICT_WORDS[verdict] for verdict in verdicts))


def comparable(
    task: TaskDefinition, grading: Grading, capabilities: Capabilities, gpu: str
) -> tuple[TaskDefinition | None, str]:
    """Return the task under the other grader; None and why if the runner cannot compare both."""
    other = grading.other_task(task)
    if other is None:
        return None, ""
    parts = missing(capabilities, other, gpu)
    return (None, f"missing {', '.join(parts)} on {gpu}") if parts else (other, "")


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
        f"expected: {VERDICT_WORDS[solution.expect]}"
    )
    if found.level is Level.ERROR and difference is not Level.ERROR:
        words = f"by the chosen grader it {found.message}; {words}"
    level = found.level if found.level is Level.ERROR else difference
    return Finding(level, solution.name, words, comparison)


def _finding(solution: Solution, evaluation: Evaluation) -> Finding:
    if evaluation.verdict is solution.expect:
        return Finding(
            Level.INFO, solution.name, f"{VERDICT_WORDS[evaluation.verdict]}, as expected"
        )
    words = f"got {in_words(evaluation)}, expected {VERDICT_WORDS[solution.expect]}"
    return Finding(Level.ERROR, solution.name, words)


def _agree(verdicts: Sequence[Verdict]) -> bool:
    """Return whether all pass, or all refuse; a `task_error` says nothing about the solution."""
    passed = {each is Verdict.PASSED for each in verdicts}
    return len(passed) == 1 and Verdict.TASK_ERROR not in verdicts
