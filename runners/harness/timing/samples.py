"""Decides how many samples a round has.

The policy sets the number. A noisy machine reduces it; a kernel that is much slower than the
reference gets `SAMPLES_LEAST`.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean, variance

import torch

from runners.contract.comparison import SLOWER_MOST
from runners.contract.evaluation import RoundPolicy
from runners.contract.task import Workload
from runners.harness.deadline import Deadline
from runners.harness.judge.session import EvaluationSession, seed_of
from runners.harness.timing.rounds import Round

SAMPLES_LEAST = 3
"""The least number of samples of a round, even if time runs out."""
SAMPLES_RELIABLE = 6
"""The least number of samples if there is time; the median of fewer is unreliable."""
FULL_ROUNDS = 3
"""The number of first rounds that have all samples, which show by how much rounds differ."""
NOISY_SAMPLES = 12
"""The most samples of a round on a noisy machine: rounds differ by more than their samples show."""

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
    """Measures the cost of sampling and sets the number of samples of the next rounds."""

    def __init__(
        self, policy: RoundPolicy, *, noisy: bool, is_slow: Callable[[Round], bool]
    ) -> None:
        self.policy = policy
        self.noisy = noisy
        self.is_slow = is_slow
        self.most = min(policy.samples, NOISY_SAMPLES) if noisy else policy.samples
        self.wanted = self.most
        self.sampling_s = self.elapsed_s = 0.0
        self.round_began = 0.0

    def needs_more(self, result: Round, until: Deadline) -> bool:
        """Whether the round needs another sample and has time for it."""
        count = len(result.windows)
        if count < SAMPLES_LEAST:
            return True
        return count < self.wanted and until.remaining > 0 and not self.is_slow(result)

    @contextmanager
    def measure_sampling(self) -> Iterator[None]:
        """Measure the time of the block, which takes all samples of a round."""
        self.round_began = time.monotonic()
        yield
        self.sampling_s += self.round_s

    @property
    def round_s(self) -> float:
        """Seconds since the first sample of this round began."""
        return time.monotonic() - self.round_began

    def update(self, rounds: list[Round], spent: float) -> None:
        """On a noisy machine, reduce the next rounds' samples to those that are worth their time.

        On such a machine, rounds differ far more than the samples within one. The first
        `FULL_ROUNDS` rounds have all samples of the policy and show by how much. `spent` is the
        last round's duration in seconds.
        """
        self.elapsed_s += spent
        if not self.noisy or len(rounds) < FULL_ROUNDS:
            return
        sample = self.sampling_s / sum(len(each.windows) for each in rounds)
        setup = (self.elapsed_s - self.sampling_s) / len(rounds)
        worth = samples_worth(rounds, setup, sample)
        self.wanted = round(min(self.most, max(SAMPLES_RELIABLE, worth)))


def samples_worth(rounds: list[Round], setup: float, sample: float) -> float:
    """The number of samples per round with which the mean of all rounds becomes precise soonest.

    A round costs `setup` and each of its samples `sample`, in the same unit of time. If rounds
    differ more than their samples explain, more rounds help and more samples do not. If no more
    rounds are allowed, fewer samples save time and lose a little precision.
    Source: two-stage sampling, W. G. Cochran, Sampling Techniques (1977), 10.6.
    """
    squares = [each.error**2 for each in rounds]
    within = fmean(square * len(each.windows) for square, each in zip(squares, rounds, strict=True))
    between = variance(each.bound for each in rounds) - fmean(squares)
    return math.sqrt(setup / sample * within / between) if between > 0 else math.inf
