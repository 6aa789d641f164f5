"""How long a task's own reference takes, and the least time that a card's memory allows.

It is judged as everybody's kernel is, by a job of the house, in a candidate to which the whole task
is shown: the reference is trusted, and no other candidate lives next to it.

Known only where memory, and not arithmetic, is certainly the limit: a task says how many operations
it takes, not in which precision, so they are counted at the slowest rate there is.
"""

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.domain.errors import UserError
from bot.domain.ids import BoardId, SubmissionId, TaskVersionId
from bot.domain.job import JobState
from bot.domain.scoring import ScoreValue
from bot.domain.tasks.lint import defined_names, parse_python
from bot.domain.tasks.task_file import REFERENCE
from runners.contract.evaluation import CPU, Environment
from runners.contract.formula import FormulaError
from runners.contract.gpus import GPU_TYPES, Peak
from runners.contract.peaks import amount
from runners.contract.task import (
    REFERENCE_MODEL,
    Grader,
    Mode,
    RankingBy,
    TaskDefinition,
    TaskFormat,
)
from runners.contract.verdict import Verdict
from runners.languages import spec_of

_USUAL = "ref_kernel"
_MATCHER = "make_match_reference"
"""KernelBot's maker of checks: `check_implementation = make_match_reference(ref_kernel)`."""
FAILED = "reference-failed"
"""What the audit calls it when a reference could not be timed."""


@dataclass(frozen=True, slots=True)
class Untimed:
    """A board's present task version on one of its GPU types, whose reference is untimed."""

    board: BoardId
    task_version: TaskVersionId
    gpu: str


@dataclass(frozen=True, slots=True)
class Reference:
    """What is known of the reference of one task version on one GPU type.

    `value`, `machine` and `at` are there once it was timed; `failure` says why it never will be.
    No `submission` where the task has no reference that could be timed.
    """

    submission: SubmissionId | None
    value: ScoreValue | None = None
    machine: str = ""
    at: datetime | None = None
    failure: str = ""


def reference_source(task: TaskDefinition) -> str | None:
    """The submission that hands in the task's reference; None for a task which names none."""
    if task.format is TaskFormat.KERNELBENCH and task.grader is Grader.NATIVE:
        return REFERENCE_MODEL
    name = _reference_name(task)
    return None if name is None else f"from reference import {name} as custom_kernel\n"


def as_candidate(task: TaskDefinition) -> TaskDefinition:
    """The task as the reference is judged by: its candidate sees every file, which no other may."""
    return task.model_copy(update={"shared_files": tuple(task.files)})


def failure(state: JobState, error: str | None, verdict: str | None, message: str | None) -> str:
    """Why a reference without a time will get none; empty while its job goes on."""
    match state:
        case JobState.SUCCEEDED if verdict == Verdict.PASSED:
            return "it passed, but with no time that can be used"
        case JobState.SUCCEEDED:
            return f"{verdict}: {message}" if message else f"{verdict}"
        case JobState.FAILED:
            return error or "given up"
        case JobState.CANCELLED:
            return "cancelled"
        case JobState.QUEUED | JobState.RUNNING:
            return ""


def failure_subject(board: str, version: int, gpu: str) -> str:
    """How the audit names a reference."""
    return f"board {board} version {version} on {gpu}"


def machine_of(environment: Environment) -> str:
    """The machine of a reference's time in a few words, such as `NVIDIA H200, driver 570.86`."""
    machine = environment.cpu if environment.gpu == CPU else environment.gpu
    return f"{machine}, driver {environment.driver}" if environment.driver else machine


def speed_up(reference: ScoreValue, value: ScoreValue) -> float:
    """How many times faster than the reference."""
    return reference.time_ns / value.time_ns


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
    named = (_USUAL, *_matched(tree))
    return next((name for name in named if name in defined_names(tree)), None)


def _matched(tree: ast.Module) -> Iterator[str]:
    """The kernels of which the module makes its check."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func, node.args:
                case ast.Name(id=maker), [ast.Name(id=kernel), *_] if maker == _MATCHER:
                    yield kernel
                case _:
                    pass


def speed_of_light(task: TaskDefinition, gpu: str) -> float | None:
    """Nanoseconds that no ranked time can be under, combined as the task combines times."""
    card = GPU_TYPES.get(gpu)
    if card is None or task.bytes is None or not task.lower_bound:
        return None
    try:
        floors = list(_floors(task, card.peak))
    except FormulaError:
        return None
    if not floors or None in floors:
        return None
    return _combined(task.ranking_by, [each for each in floors if each is not None])


def _floors(task: TaskDefinition, peak: Peak) -> Iterator[float | None]:
    for workload in task.timed(Mode.RANKED):
        moving_s = amount(task.bytes, workload) / peak.bytes_per_s
        counting_s = amount(task.flops, workload) / peak.fp32_per_s
        yield moving_s * 1e9 if moving_s > counting_s else None


def _combined(ranking_by: RankingBy, floors: list[float]) -> float:
    match ranking_by:
        case RankingBy.LAST:
            return floors[-1]
        case RankingBy.MEAN:
            return math.fsum(floors) / len(floors)
        case RankingBy.GEOM:
            return math.exp(math.fsum(map(math.log, floors)) / len(floors))
