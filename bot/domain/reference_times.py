"""How long a task's own reference takes, and the least time that a card's memory allows.

The reference is judged like any kernel, by a job of the system, in a candidate that sees the whole
task: it is trusted, and no other candidate runs at the same time.

The least time is known only if memory certainly limits the task, not arithmetic. A task gives its
number of operations but not their precision, so the slowest rate is assumed.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import truediv

from bot.domain.errors import UserError
from bot.domain.ids import BoardId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.noise import noise_of
from bot.domain.scoring import ScoreValue, combine
from bot.domain.tasks.lint import defined_names, parse_python
from bot.domain.tasks.task_file import REFERENCE
from runners.contract.evaluation import CPU, Environment, Evaluation, Measurement, StopReason
from runners.contract.formula import FormulaError
from runners.contract.gpus import GPU_TYPES, Peak, amount
from runners.contract.task import (
    REFERENCE_KERNEL,
    REFERENCE_MODEL,
    Grader,
    Mode,
    TaskDefinition,
    TaskFormat,
)
from runners.contract.verdict import Verdict
from runners.languages import spec_of

_REFERENCE_KERNEL = "ref_kernel"
_CHECK_FACTORY = "make_match_reference"
"""KernelBot's factory of checks: `check_implementation = make_match_reference(ref_kernel)`."""
FAILED = "reference-failed"
"""The audit action for a reference that could not be timed."""


@dataclass(frozen=True, slots=True)
class Untimed:
    """A board's current task version, and a GPU type on which its reference is not timed yet."""

    board: BoardId
    task_version: TaskVersionId
    gpu: str


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known about one task version's reference on one GPU type.

    `value`, `machine` and `at` are set once it was timed; `failure` says why it never will be.
    `submission` is None for a task without a reference that can be timed.
    """

    submission: SubmissionId | None
    value: ScoreValue | None = None
    machine: str = ""
    at: datetime | None = None
    failure: str = ""


def reference_source(task: TaskDefinition) -> str | None:
    """Return the source that submits the task's reference; None for a task without one."""
    if task.format is TaskFormat.KERNELBENCH and task.grader is Grader.NATIVE:
        return REFERENCE_MODEL
    name = _reference_name(task)
    return None if name is None else REFERENCE_KERNEL.format(name)


def failure(state: JobState, error: str | None, verdict: str | None, message: str | None) -> str:
    """Return why a reference will get no time; empty while its job is unfinished."""
    match state:
        case JobState.SUCCEEDED if verdict == Verdict.PASSED:
            return "it passed, but no usable time was measured"
        case JobState.SUCCEEDED:
            return f"{verdict}: {message}" if message else f"{verdict}"
        case JobState.FAILED:
            return error or "given up"
        case JobState.CANCELLED:
            return "cancelled"
        case JobState.QUEUED | JobState.RUNNING:
            return ""


def failure_subject(board: str, version: int, gpu: str) -> str:
    """Return how the audit log names a reference."""
    return f"board {board} version {version} on {gpu}"


def machine_of(environment: Environment) -> str:
    """Return the machine of a reference's time, such as `NVIDIA H200, driver 570.86`."""
    machine = environment.cpu if environment.gpu == CPU else environment.gpu
    return f"{machine}, driver {environment.driver}" if environment.driver else machine


def _reference_name(task: TaskDefinition) -> str | None:
    if (
        not spec_of(task.lang).is_python
        or task.grader is not Grader.NATIVE
        or REFERENCE not in task.files
    ):
        return None
    try:
        tree = parse_python(task.files[REFERENCE], REFERENCE)
    except UserError:
        return None
    kernels = (_REFERENCE_KERNEL, *_checked_kernels(tree))
    return next((name for name in kernels if name in defined_names(tree)), None)


def _checked_kernels(tree: ast.Module) -> Iterator[str]:
    """Yield the kernels that the module passes to `make_match_reference`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=maker), args=[ast.Name(id=kernel), *_]):
                if maker == _CHECK_FACTORY:
                    yield kernel
            case _:
                pass


@dataclass(frozen=True, slots=True)
class Work:
    """The operations and bytes of memory that a workload needs, and the card's nominal rates."""

    flops: float
    bytes: float
    peak: Peak

    @property
    def floor_ns(self) -> float | None:
        """The least time that the memory allows; None unless memory certainly limits it."""
        memory_s = self.bytes / self.peak.bytes_per_s
        return memory_s * 1e9 if memory_s > self.flops / self.peak.fp32_per_s else None


Times = Mapping[str, ScoreValue]
"""The judge's time of each benchmark, by its spec."""


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A run that a submission is compared with; `submission` is None for the task's reference."""

    name: str
    times: Times
    submission: SubmissionId | None = None


@dataclass(frozen=True, slots=True)
class OtherTimes:
    """The other runs on one GPU type, and the work of each benchmark, by its spec, if known."""

    others: tuple[OtherRun, ...] = ()
    work: Mapping[str, Work] | None = None
    task: TaskDefinition | None = None
    """The task whose benchmarks they are; None if the viewer may not see its board."""


def measured_ns(evaluation: Evaluation) -> tuple[float, ...]:
    """Return the reference's time in each benchmark, as timed in turn with a kernel on the CPU.

    It is empty if some benchmark has none.
    """
    timed = [each.measurement for each in evaluation.cases if each.measurement is not None]
    found = [each.time_ns / each.vs_reference.ratio for each in timed if each.vs_reference]
    return tuple(found) if len(found) == len(timed) else ()


def scaled(measured: Measurement, slowdown: float) -> Measurement:
    """Return it with the times of a machine that is this many times faster.

    Its noise is that of the ratio; of a slow kernel, whose few rounds do not tell that, its own.
    """
    time_ns = measured.time_ns / slowdown
    slow = measured.stop_reason is StopReason.SLOW
    return measured.model_copy(
        update={
            "time_ns": time_ns,
            "half_width_ns": measured.half_width_ns / slowdown
            if slow
            else noise_of(measured) * time_ns,
            "bound_ns": measured.bound_ns / slowdown,
            "resolution_ns": measured.resolution_ns / slowdown,
            "samples": tuple(tuple(ns / slowdown for ns in each) for each in measured.samples),
            "slowdown": slowdown,
        }
    )


def at_usual_speed(evaluation: Evaluation, usual_ns: Sequence[float]) -> Evaluation:
    """Return the evaluation with times in which the reference takes its usual time on the board.

    A machine's speed changes from hour to hour, and boards may have several machines. `usual_ns`
    has the usual time of each benchmark; the evaluation has a ratio to the reference for each.
    """
    slowdowns = iter(map(truediv, measured_ns(evaluation), usual_ns))
    cases = [
        each
        if each.measurement is None
        else each.model_copy(update={"measurement": scaled(each.measurement, next(slowdowns))})
        for each in evaluation.cases
    ]
    return evaluation.model_copy(update={"cases": tuple(cases)})


def work_by_spec(task: TaskDefinition, gpu: str) -> dict[str, Work]:
    """Return the work of each benchmark, by its spec; empty if it or the card is unknown."""
    card = GPU_TYPES.get(gpu)
    if card is None or task.bytes is None or not task.lower_bound:
        return {}
    try:
        return {
            each.spec: Work(amount(task.flops, each), amount(task.bytes, each), card.peak)
            for each in task.benchmarks
        }
    except FormulaError:
        return {}


def speed_of_light(task: TaskDefinition, gpu: str) -> float | None:
    """Return the least ranked time in ns that the card's memory allows; None if it is unknown.

    The times of several workloads are combined as the task's `ranking_by` says.
    """
    known = work_by_spec(task, gpu)
    floors = [known[each.spec].floor_ns for each in task.timed(Mode.RANKED)] if known else []
    times = [ScoreValue(each, 0.0) for each in floors if each is not None]
    if not times or len(times) < len(floors):
        return None
    return combine(task.ranking_by, times).time_ns
