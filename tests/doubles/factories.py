"""Creates domain values for tests: valid defaults, which a test may override."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from bot.domain.board import Board, Viewer
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.scoring import Score, ScoreValue, Standing, entrants, rank_entrants
from bot.domain.submission import SubmissionRequest
from runners.contract.evaluation import (
    CPU,
    CaseKind,
    CaseResult,
    CaseStatus,
    Environment,
    Evaluation,
    EvaluationRequest,
    Isolation,
    Measurement,
    StopReason,
)
from runners.contract.runner import Capabilities
from runners.contract.task import Mode, TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
_numbers = count(1)


def make_task(**changes: object) -> TaskDefinition:
    """A small valid task with two tests and one benchmark."""
    values: dict[str, Any] = {
        "name": "vectoradd",
        "lang": "py",
        "description": "Add two vectors.",
        "files": {"reference.py": "def generate_input(size): ...\n"},
        "tests": (Workload(args={"size": 16}), Workload(args={"size": 17})),
        "benchmarks": (Workload(args={"size": 1024}),),
        "gpus": (CPU,),
    }
    return TaskDefinition(**(values | changes))


def make_board(**changes: object) -> Board:
    """An open board on one GPU type."""
    values: dict[str, Any] = {
        "id": BoardId(1),
        "name": "vectoradd",
        "gpus": (CPU,),
        "deadline": None,
        "creator": PersonId(1),
        "task_version": TaskVersionId(1),
        "created_at": NOON,
    }
    return Board(**(values | changes))


def make_submission(person: int = 1, **changes: object) -> SubmissionRequest:
    """A ranked submission to the board `vectoradd`, as a front end creates it."""
    values: dict[str, Any] = {
        "viewer": Viewer(PersonId(person)),
        "file_name": "kernel.py",
        "content": b"def custom_kernel(data):\n    return data\n",
        "mode": Mode.RANKED,
        "board": "vectoradd",
    }
    return SubmissionRequest(**(values | changes))


def make_request(**changes: object) -> EvaluationRequest:
    """A request to evaluate a submission on the CPU."""
    values: dict[str, Any] = {
        "request_id": "job-1",
        "task": make_task(),
        "source": "def custom_kernel(data):\n    return data\n",
        "mode": Mode.TEST,
        "gpu": CPU,
    }
    return EvaluationRequest(**(values | changes))


def make_measurement(time_ns: float = 1_000.0, half_width_ns: float = 1.0) -> Measurement:
    """A confirmed time."""
    return Measurement(
        time_ns=time_ns,
        half_width_ns=half_width_ns,
        bound_ns=time_ns,
        resolution_ns=1.0,
        rounds=1,
        samples=((time_ns,),),
        stop_reason=StopReason.PRECISE,
    )


def make_case(kind: CaseKind = CaseKind.TEST, **changes: object) -> CaseResult:
    """A passed case, with a measurement if it is a benchmark."""
    values: dict[str, Any] = {"spec": "size: 16", "kind": kind, "status": CaseStatus.PASSED}
    if kind is CaseKind.BENCHMARK:
        values |= {"spec": "size: 1024", "measurement": make_measurement()}
    return CaseResult(**(values | changes))


def make_noisy_case() -> CaseResult:
    """A benchmark whose time on the CPU is too noisy to be ranked."""
    return make_case(CaseKind.BENCHMARK, measurement=make_measurement(1e6, 0.23e6))


def make_evaluation(**changes: object) -> Evaluation:
    """A passed ranked evaluation of one benchmark; another verdict gets a failing stage."""
    values: dict[str, Any] = {
        "request_id": "job-1",
        "verdict": Verdict.PASSED,
        "mode": Mode.RANKED,
        "task": "vectoradd",
        "gpu": CPU,
        "environment": make_environment(str(changes.get("gpu", CPU))),
        "isolation": Isolation(outer="none"),
        "wall_s": 2.0,
    }
    if changes.get("verdict", Verdict.PASSED) is Verdict.PASSED:
        values["cases"] = (make_case(), make_case(), make_case(CaseKind.BENCHMARK))
    else:
        values["stage"] = Stage.TEST
    return Evaluation(**(values | changes))


def make_environment(gpu: str = CPU) -> Environment:
    """The environment of an invented machine."""
    return Environment(
        gpu=gpu,
        python="3.11",
        cpu="test",
        cores=2,
        platform="test",
        harness_version="test",
        transport="none",
    )


def make_capabilities(**changes: object) -> Capabilities:
    """A runner with one CPU slot for Python tasks."""
    values: dict[str, Any] = {"harness_version": "test", "gpus": {CPU: 1}}
    return Capabilities(**(values | changes))


def make_score(person: int, time_ns: float, half_width_ns: float = 0.0, **changes: object) -> Score:
    """A score of a person; each is later than the previous one."""
    number = next(_numbers)
    values: dict[str, Any] = {
        "submission": SubmissionId(number),
        "person": PersonId(person),
        "person_name": f"person {person}",
        "board": BoardId(1),
        "task_version": TaskVersionId(1),
        "gpu": CPU,
        "value": ScoreValue(time_ns, half_width_ns),
        "submitted_at": NOON + timedelta(seconds=number),
    }
    return Score(**(values | changes))


def rank(scores: Iterable[Score]) -> tuple[Standing, ...]:
    """The standings of these scores."""
    return rank_entrants(entrants(scores))
