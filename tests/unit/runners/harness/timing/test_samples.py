"""How many samples a round has."""

import pytest

from runners.contract.evaluation import RoundPolicy
from runners.harness.deadline import Deadline
from runners.harness.timing.rounds import Round
from runners.harness.timing.samples import HOST_SAMPLES, SAMPLES_LEAST, Samples

POLICY = RoundPolicy(looks=(5, 30), samples=30)


def make_round(samples: int) -> Round:
    return Round(windows=[1e6] * samples, claims=[1e6] * samples)


@pytest.mark.parametrize(
    ("on_cpu", "policy", "most"),
    [(False, 30, 30), (True, 30, HOST_SAMPLES), (True, 4, 4), (True, 3, SAMPLES_LEAST)],
)
def test_a_round_has_the_samples_of_its_policy_and_on_the_cpu_few(
    *, on_cpu: bool, policy: int, most: int
) -> None:
    given = RoundPolicy(looks=(5,), samples=policy)
    samples, plenty = Samples(given, on_cpu=on_cpu, is_slow=lambda _: False), Deadline.after(60)
    assert samples.needs_more(make_round(most - 1), plenty)
    assert not samples.needs_more(make_round(most), plenty)


def test_a_round_without_time_left_has_the_least() -> None:
    samples, over = Samples(POLICY, on_cpu=True, is_slow=lambda _: False), Deadline.after(-1)
    assert samples.needs_more(make_round(SAMPLES_LEAST - 1), over)
    assert not samples.needs_more(make_round(SAMPLES_LEAST), over)


def test_a_round_of_slow_calls_has_the_least() -> None:
    asked: list[int] = []

    def is_slow(result: Round) -> bool:
        asked.append(len(result.windows))
        return True

    samples, plenty = Samples(POLICY, on_cpu=False, is_slow=is_slow), Deadline.after(60)
    assert samples.needs_more(make_round(SAMPLES_LEAST - 1), plenty)
    assert not samples.needs_more(make_round(SAMPLES_LEAST), plenty)
    assert asked == [SAMPLES_LEAST]  # fewer calls tell nothing
