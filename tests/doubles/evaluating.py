"""Requests that every runner understands: real Python for a harness, directives for the fake."""

import itertools

from runners.contract.evaluation import CPU, EvaluationRequest, Limits
from runners.contract.task import Mode, TaskDefinition, Workload

REFERENCE = """
import torch

def generate_input(size: int, seed: int):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator), torch.empty(size)

def check_implementation(data, output):
    right = torch.equal(output, data[0])
    return right, "" if right else "mismatch"
"""
RIGHT = "def custom_kernel(data):\n    data[1].copy_(data[0])\n    return data[1]\n"
WRONG = "# fake: verdict=wrong_answer\ndef custom_kernel(data):\n    return data[1].zero_()\n"
ENDLESS = "# fake: seconds=1000\ndef custom_kernel(data):\n    while True:\n        pass\n"
_numbers = itertools.count(1)


def make_identity(timeout_s: int = 10) -> TaskDefinition:
    """The smallest task: copy the input."""
    return TaskDefinition(
        name="identity",
        lang="py",
        description="Copy the input.",
        files={"reference.py": REFERENCE},
        tests=(Workload(args={"size": 64, "seed": 1}),),
        benchmarks=(Workload(args={"size": 1024, "seed": 2}),),
        test_timeout=timeout_s,
        benchmark_timeout=timeout_s,
        ranked_timeout=timeout_s,
    )


def make_request(
    source: str = RIGHT,
    *,
    mode: Mode = Mode.TEST,
    timeout_s: int = 10,
    limits: Limits | None = None,
    gpu: str = CPU,
) -> EvaluationRequest:
    """A request with a new id."""
    return EvaluationRequest(
        request_id=f"request-{next(_numbers)}",
        task=make_identity(timeout_s),
        source=source,
        mode=mode,
        gpu=gpu,
        limits=limits or Limits(),
    )
