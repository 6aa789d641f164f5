"""How many samples a round has, by what they cost and tell."""

import math

import pytest

from runners.contract.evaluation import RoundPolicy
from runners.harness.deadline import Deadline
from runners.harness.timing.rounds import Round
from runners.harness.timing.samples import (
    FULL_ROUNDS,
    NOISY_SAMPLES,
    SAMPLES_LEAST,
    SAMPLES_RELIABLE,
    Samples,
    samples_worth,
)

POLICY = RoundPolicy(looks=(5, 30), samples=30)


def make_round(window: float, samples: int = 10) -> Round:
    """A round whose samples differ by little and whose median is `window`."""
    windows = [window + index % 3 for index in range(samples)]
    return Round(
        windows=windows,
        claims=[window] * samples,
        overheads_during=[1.0] * samples,
        overheads_before=[1.0],
    )


def wanted(rounds: list[Round], *, noisy: bool, round_s: float) -> int:
    """What is wanted after these rounds, of which sampling took half the time."""
    samples = Samples(POLICY, noisy=noisy, is_slow=lambda _: False)
    samples.sampling_s = 0.5 * round_s * len(rounds)
    for upto in range(1, len(rounds) + 1):
        samples.update(rounds[:upto], round_s)
    return samples.wanted


def test_where_rounds_lie_far_apart_a_round_has_few_samples() -> None:
    apart = [make_round(1e6 * (1 + 0.1 * n)) for n in range(FULL_ROUNDS + 1)]
    assert wanted(apart, noisy=True, round_s=1.0) == SAMPLES_RELIABLE


def test_where_only_samples_tell_all_are_taken() -> None:
    alike = [make_round(1e6) for _ in range(FULL_ROUNDS + 1)]
    assert wanted(alike, noisy=True, round_s=1.0) == NOISY_SAMPLES


def test_the_first_rounds_and_all_on_a_gpu_have_all_samples() -> None:
    apart = [make_round(1e6 * (1 + 0.1 * n)) for n in range(FULL_ROUNDS + 1)]
    assert wanted(apart[: FULL_ROUNDS - 1], noisy=True, round_s=1.0) == NOISY_SAMPLES
    assert wanted(apart, noisy=False, round_s=1.0) == POLICY.samples


def test_a_round_without_time_left_has_the_least() -> None:
    samples = Samples(POLICY, noisy=True, is_slow=lambda _: False)
    over = Deadline.after(-1)
    assert samples.needs_more(make_round(1e6, SAMPLES_LEAST - 1), over)
    assert not samples.needs_more(make_round(1e6, SAMPLES_LEAST), over)
    assert samples.needs_more(make_round(1e6, NOISY_SAMPLES - 1), Deadline.after(60))
    assert not samples.needs_more(make_round(1e6, NOISY_SAMPLES), Deadline.after(60))


def test_a_round_of_slow_calls_has_the_least() -> None:
    asked: list[int] = []

    def is_slow(result: Round) -> bool:
        asked.append(len(result.windows))
        return True

    samples, plenty = Samples(POLICY, noisy=False, is_slow=is_slow), Deadline.after(60)
    assert samples.needs_more(make_round(1e9, SAMPLES_LEAST - 1), plenty)
    assert not samples.needs_more(make_round(1e9, SAMPLES_LEAST), plenty)
    assert asked == [SAMPLES_LEAST]  # fewer calls tell nothing


def test_samples_are_worth_less_the_further_rounds_lie_apart() -> None:
    def worth(apart: float, setup: float = 4.0) -> float:
        rounds = [make_round(1e6 * (1 + apart * n)) for n in range(4)]
        return samples_worth(rounds, setup, 1.0)

    assert worth(0.0) == math.inf  # then samples are all that tells
    assert worth(0.1) == pytest.approx(2 * worth(0.2), rel=0.01)
    assert worth(0.1, setup=16.0) == pytest.approx(2 * worth(0.1))
