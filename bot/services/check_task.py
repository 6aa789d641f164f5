"""Checks a task before people meet it: its lints, its own solutions, and degenerate answers."""

import asyncio
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass

from bot.domain.degenerate import DEGENERATE, degenerate_source
from bot.domain.solutions import Solution, solutions
from bot.domain.task_bundle import TASK_FILE, TaskBundle
from bot.domain.task_lint import lint
from bot.domain.task_report import Finding, Level, TaskReport
from runners.contract.evaluation import CPU, Evaluation, EvaluationRequest, Progress, RoundPolicy
from runners.contract.runner import Capabilities, Runner
from runners.contract.task import Device, Language, Mode, TaskDefinition, TaskFormat
from runners.contract.verdict import Verdict

ROUNDS = RoundPolicy(looks=(2,), samples=3)
"""Enough to meet every benchmark with fresh inputs; the times are not wanted."""

_NEEDS_GPU = frozenset({"cuda", "triton"})
_MESSAGE_MAX = 400


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where the task is run."""

    runner: Runner
    task: TaskDefinition
    gpu: str


async def check_task(
    runner: Runner, bundle: TaskBundle, task: TaskDefinition, gpu: str
) -> TaskReport:
    """Lint the task and run what it ships; RunnerError when the runner fails."""
    shipped = solutions(bundle)
    static = lint(task, shipped)
    capabilities = await runner.capabilities()
    reason = _unfit(task, gpu, capabilities)
    if reason:
        finding = Finding(Level.WARNING, TASK_FILE, f"the dry run was not done: {reason}")
        return TaskReport(task.name, (*static, finding), dry_run=False)
    bench = _Bench(runner, task, gpu)
    steps = (
        *(_check_solution(bench, solution, capabilities) for solution in shipped),
        *(_check_template(bench, file) for file in sorted(set(task.templates.values()))),
        *_degenerate_checks(bench, shipped, capabilities),
    )
    executed = await _together(steps)
    return TaskReport(task.name, (*static, *executed))


async def _together(steps: tuple[Coroutine[None, None, Finding], ...]) -> tuple[Finding, ...]:
    """Run every step at once, for the runner knows its own slots; the first error stops all."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(step) for step in steps]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return tuple(task.result() for task in tasks)


def _unfit(task: TaskDefinition, gpu: str, capabilities: Capabilities) -> str:
    if gpu not in capabilities.gpus:
        return f"the runner has no {gpu}"
    if (task.device is Device.CUDA and gpu == CPU) or (task.device is Device.CPU and gpu != CPU):
        return f"the task wants the device {task.device.value!r}, not {gpu}"
    offers = (
        (task.lang, capabilities.languages),
        (task.grader, capabilities.graders),
        (task.format, capabilities.formats),
    )
    for wanted, offered in offers:
        if wanted not in offered:
            return f"the runner does not offer {wanted.value!r}"
    absent = [name for name in task.libraries if name not in capabilities.libraries]
    return f"the runner lacks {', '.join(absent)}" if absent else ""


def _missing(solution: Solution, gpu: str, capabilities: Capabilities) -> str:
    """What the solution needs and the runner lacks, in words; empty when it can run."""
    for need in solution.needs:
        if need in _NEEDS_GPU:
            if gpu == CPU:
                return f"skipped: it needs {need}, and {gpu} has none"
        elif need not in capabilities.libraries:
            return f"skipped: it needs {need}, and the runner lacks it"
    return ""


async def _check_solution(bench: _Bench, solution: Solution, has: Capabilities) -> Finding:
    reason = _missing(solution, bench.gpu, has)
    if reason:
        return Finding(Level.INFO, solution.name, reason)
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


def _degenerate_checks(
    bench: _Bench, shipped: tuple[Solution, ...], has: Capabilities
) -> tuple[Coroutine[None, None, Finding], ...]:
    usable = (
        solution
        for solution in shipped
        if solution.expect is Verdict.PASSED and not _missing(solution, bench.gpu, has)
    )
    first = next(usable, None)
    kernels = bench.task.lang is Language.PYTHON and bench.task.format is TaskFormat.KERNEL
    if first is None or not kernels:
        return ()
    return tuple(_check_degenerate(bench, first, answer) for answer in DEGENERATE)


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
