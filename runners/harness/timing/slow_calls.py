"""Ends the timing of a kernel early if it takes far longer than the reference."""

import functools
import math
import time
from statistics import median

import torch

from runners.contract.evaluation import SLOWER_MOST
from runners.contract.task import Workload
from runners.harness.judge.session import EvaluationSession, seed_of
from runners.harness.timing.rounds import Round

SLOW_NS = 20e6
"""A kernel with shorter calls is never slow: all calls of a ranked run take about ten seconds."""
ROUNDS = 2
"""The rounds of a slow kernel, each with the least number of samples."""
REFERENCE_CALLS = 3
"""Calls of the reference that are timed, only once a kernel's calls exceed `SLOW_NS`."""


class SlowCalls:
    """Compares a kernel's calls with the reference's, which run in this evaluation too."""

    def __init__(self, session: EvaluationSession, workload: Workload) -> None:
        self.session = session
        self.workload = workload

    def is_slow(self, result: Round) -> bool:
        """Whether the calls take more than `SLOWER_MOST` times as long as the reference."""
        return result.bound > SLOW_NS and result.bound > SLOWER_MOST * self.reference_ns

    def end_timing(self, rounds: list[Round]) -> bool:
        """Whether the kernel was slow in each of enough rounds."""
        return len(rounds) >= ROUNDS and all(map(self.is_slow, rounds))

    @functools.cached_property
    def reference_ns(self) -> float:
        """How long the reference takes in ns; infinity if the task has none.

        It includes a copy of the input, so the reference itself is not slower than this.
        """
        return median(self._reference_ns() for _ in range(REFERENCE_CALLS))

    def _reference_ns(self) -> float:
        code = self.session.code
        data = code.generate(self.workload, seed_of(self.session.nonce, self.workload, -1))
        _await_gpu()
        begin = time.perf_counter_ns()
        has_reference = code.expected(data) is not None
        _await_gpu()
        return time.perf_counter_ns() - begin if has_reference else math.inf


def _await_gpu() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
