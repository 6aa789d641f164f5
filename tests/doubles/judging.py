"""Real evaluations for tests: a harness process, and small tasks for it."""

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress, RoundPolicy
from runners.contract.task import Mode, TaskDefinition, Workload
from tests.doubles import footprints

ROOT = Path(__file__).resolve().parents[2]
FEW_ROUNDS = RoundPolicy(looks=(2,), samples=5)
_numbers = itertools.count(1)

SORT = """
import torch

def generate_input(size: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator), torch.empty(size)

def ref_kernel(data):
    return torch.sort(data[0]).values

def check_implementation(data, output):
    right = torch.equal(output, ref_kernel(data))
    return right, "" if right else "mismatch"
"""
SORTED = "import torch\ndef custom_kernel(data):\n    return torch.sort(data[0]).values\n"


def make_sort_task(reference: str = SORT, **changes: object) -> TaskDefinition:
    """A task that sorts numbers: its time is known and cannot be shortened."""
    values: dict[str, Any] = {
        "name": "sort",
        "lang": "py",
        "description": "Sort.",
        "files": {"reference.py": reference},
        "tests": (Workload(args={"size": 100, "seed": 1}),),
        "benchmarks": (Workload(args={"size": 20_000, "seed": 2}),),
        "test_timeout": 20,
        "benchmark_timeout": 20,
        "ranked_timeout": 20,
    }
    return TaskDefinition(**(values | changes))


def make_judging(
    source: str = SORTED, mode: Mode = Mode.TEST, **changes: object
) -> EvaluationRequest:
    """A request with few rounds and a new id."""
    values: dict[str, Any] = {
        "request_id": f"judging-{next(_numbers)}",
        "task": make_sort_task(),
        "source": source,
        "mode": mode,
        "rounds": FEW_ROUNDS,
    }
    return EvaluationRequest(**(values | changes))


class Harness:
    """A harness program that stays warm."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the harness process needs pipes")
        self.process = process
        self.stdin = process.stdin
        self.stdout = process.stdout
        self.progress: list[Progress] = []

    def line(self) -> dict[str, Any]:
        """The next line that it prints."""
        found: dict[str, Any] = json.loads(self.stdout.readline())
        return found

    def send(self, line: bytes) -> None:
        """Send one line once it can be read."""
        assert self.line() == {"health": {"unfit": "", "scrubbed": 0}}
        self.stdin.write(line + b"\n")
        self.stdin.flush()

    def ask(self, line: bytes) -> dict[str, Any]:
        """Send one line and return the first answer that is not progress."""
        self.progress = []
        self.send(line)
        while (answer := self.line()).keys() == {"progress"}:
            self.progress.append(Progress.model_validate_json(json.dumps(answer["progress"])))
        return answer

    def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Return the evaluation of a request; AssertionError if the harness itself failed."""
        answer = self.ask(request.model_dump_json().encode())
        assert "evaluation" in answer, answer
        return Evaluation.model_validate_json(json.dumps(answer["evaluation"]))


@contextmanager
def serving() -> Iterator[Harness]:
    """A warm harness, as a runner starts it."""
    with subprocess.Popen(
        footprints.harness("--serve"),
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            **footprints.inherited(),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        harness = Harness(process)
        assert "ready" in harness.line()
        try:
            yield harness
        finally:
            harness.stdin.close()
            process.wait(10)
