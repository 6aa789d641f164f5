"""How many samples a round has: what the policy wants, or what is worth its time."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import fmean, variance

from runners.contract.evaluation import RoundPolicy
from runners.harness.deadline import Deadline
from runners.harness.timing.rounds import Round

LEAST = 3
"""How many samples a round has, however near its end is."""
WORTH_LEAST = 6
"""How many it has when its end is far, however little they tell: a median of fewer is not one."""
FULL_ROUNDS = 3
"""How many rounds have all the samples that the policy wants."""


class Samples:
    """Counts what sampling costs, and with that decides about the rounds to come."""

    def __init__(self, policy: RoundPolicy, *, noisy: bool) -> None:
        self.policy = policy
        self.noisy = noisy
        self.wanted = policy.samples
        self.taking_s = self.spent_s = 0.0

    def wants_more(self, result: Round, until: Deadline) -> bool:
        """As many samples as are wanted and the time limit has room for."""
        have = len(result.windows)
        return have < LEAST or (have < self.wanted and until.remaining > 0)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Around all samples of a round."""
        begin = time.monotonic()
        yield
        self.taking_s += time.monotonic() - begin

    def learn(self, rounds: list[Round], spent: float) -> None:
        """On a noisy machine, take no more samples in a round than are worth their time.

        Rounds differ there by far more than the samples of one. The first few, which tell that,
        have as many as the policy wants. `spent` are the last round's seconds.
        """
        self.spent_s += spent
        if not self.noisy or len(rounds) < FULL_ROUNDS:
            return
        sample = self.taking_s / sum(len(each.windows) for each in rounds)
        setup = (self.spent_s - self.taking_s) / len(rounds)
        worth = samples_worth(rounds, setup, sample)
        self.wanted = round(min(self.policy.samples, max(WORTH_LEAST, worth)))


def samples_worth(rounds: list[Round], setup: float, sample: float) -> float:
    """How many samples of a further round make the mean of all rounds precise soonest.

    A round costs `setup` before its first sample and each of them `sample`, in the same unit. Where
    rounds differ by more than their samples can explain, more rounds help and more samples do not;
    where no more rounds are allowed, time is saved and a little precision lost.
    Source: two-stage sampling, W. G. Cochran, Sampling Techniques (1977), 10.6.
    """
    squares = [each.error**2 for each in rounds]
    within = fmean(square * len(each.windows) for square, each in zip(squares, rounds, strict=True))
    between = variance(each.bound for each in rounds) - fmean(squares)
    return math.sqrt(setup / sample * within / between) if between > 0 else math.inf
