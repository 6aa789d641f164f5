"""Decides how many samples a round has.

The policy sets the number. On the CPU it is at most `HOST_SAMPLES`; a kernel that is much slower
than the reference gets `SAMPLES_LEAST`.
"""

import math
import time
from collections.abc import Callable, Iterator

import torch

from runners.contract.comparison import SLOWER_MOST
from runners.contract.evaluation import RoundPolicy
from runners.contract.task import Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.session import EvaluationSession, seed_of
from runners.harness.timing.rounds import Round

SAMPLES_LEAST = 3
"""The least number of samples of a round, even if time runs out."""
HOST_SAMPLES = 6
"""The most samples of a round on the CPU. Rounds there differ by more than their samples show, so
that many short rounds are more precise than a few long ones."""

SLOW_NS = 20e6
"""A kernel with shorter calls is never slow: with 20 ms a ranked run's calls take about 10 s."""
SLOW_ROUNDS = 2
"""The rounds of a slow kernel, each with the least number of samples."""
REFERENCE_CALLS = 50
"""The most timed calls of the reference; it is timed only if a kernel's calls exceed `SLOW_NS`."""


class SlowCalls:
    """Compares a kernel's calls with the reference's, which are timed in the same evaluation."""

    def __init__(self, session: EvaluationSession, workload: Workload) -> None:
        self.session = session
        self.workload = workload
        self.reference_ns: float | None = None
        """How long the reference takes in ns, at its fastest; infinity if the task has none.

        It includes a copy of the input, so the reference alone takes no longer.
        """

    def is_slow(self, result: Round) -> bool:
        """Whether the calls take more than `SLOWER_MOST` times as long as the reference."""
        if result.bound <= SLOW_NS:
            return False
        if self.reference_ns is None:
            self.reference_ns = min(self._reference_times(result.bound))
        return result.bound > SLOWER_MOST * self.reference_ns

    def was_slow(self, rounds: list[Round]) -> bool:
        """Whether the kernel was slow in each of enough rounds."""
        return len(rounds) >= SLOW_ROUNDS and all(map(self.is_slow, rounds))

    def _reference_times(self, most_ns: float) -> Iterator[float]:
        """Time the reference on fresh inputs, for about as long as one call of the kernel takes.

        The caller uses the fastest one, because on a busy machine many take far longer.
        """
        code, end = self.session.code, time.perf_counter_ns() + most_ns
        for _ in range(REFERENCE_CALLS):
            data = code.generate(self.workload, seed_of(self.session.nonce, self.workload, -1))
            _await_gpu()
            begin = time.perf_counter_ns()
            has_reference = code.expected(data) is not None
            _await_gpu()
            now = time.perf_counter_ns()
            yield now - begin if has_reference else math.inf
            if now > end or not has_reference:
                return


def _await_gpu() -> None:
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()


class Samples:
    """The number of samples of each round of one workload."""

    def __init__(
        self, policy: RoundPolicy, *, on_cpu: bool, is_slow: Callable[[Round], bool]
    ) -> None:
        self.is_slow = is_slow
        self.wanted = min(policy.samples, HOST_SAMPLES) if on_cpu else policy.samples

    def needs_more(self, result: Round, until: Deadline) -> bool:
        """Whether the round needs another sample and has time for it."""
        count = len(result.windows)
        if count < SAMPLES_LEAST:
            return True
        return count < self.wanted and until.remaining > 0 and not self.is_slow(result)
