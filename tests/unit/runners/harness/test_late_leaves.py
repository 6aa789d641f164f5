"""Whatever an answer is built of, no leaf of it is taken that came when the clock had stopped."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runners.contract.evaluation import RoundPolicy
from runners.contract.task import Device, Mode
from runners.contract.verdict import Verdict
from tests.doubles.judging import make_judging
from tests.doubles.leaf_kinds import (
    EARLY,
    HOST_KINDS,
    SLEEP_S,
    Shape,
    Way,
    honest_kernel,
    late_kernel,
    late_leaves,
    shapes,
    task_of,
)
from tests.exploits.corpus import found_in
from tests.unit.runners.harness.conftest import Judge

ROUNDS = RoundPolicy(looks=(1,), samples=4)
EXAMPLES = 5


def judged(judge: Judge, shape: Shape, source: str) -> float | None:
    """The time in seconds that a kernel was told; None when it was refused for a wrong answer."""
    request = make_judging(source, Mode.BENCHMARK, task=task_of(shape, Device.CPU), rounds=ROUNDS)
    evaluation = judge(request)
    found = found_in(evaluation)
    assert found.verdict in (Verdict.PASSED, Verdict.WRONG_ANSWER), evaluation.message
    if found.verdict is Verdict.WRONG_ANSWER:
        return None
    assert found.time_ns is not None
    return found.time_ns / 1e9


def expect_no_gain(judge: Judge, shape: Shape, late: int, way: Way) -> None:
    told = judged(judge, shape, late_kernel(shape, late, way))

    assert told is None or told >= 0.9 * SLEEP_S


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in EARLY if kind in HOST_KINDS])
@pytest.mark.parametrize("way", Way)
def test_a_late_leaf_of_each_kind_gains_nothing(judge: Judge, kind: str, way: Way) -> None:
    expect_no_gain(judge, Shape("tuple", (Shape(kind), Shape("none"))), 1, way)


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data(), shape=shapes(HOST_KINDS), way=st.sampled_from(Way))
def test_a_late_leaf_of_any_answer_gains_nothing(
    judge: Judge, data: st.DataObject, shape: Shape, way: Way
) -> None:
    expect_no_gain(judge, shape, data.draw(late_leaves(shape)), way)


@pytest.mark.slow
def test_an_answer_of_every_kind_that_comes_in_time_passes(judge: Judge) -> None:
    shape = Shape("dict", tuple(map(Shape, HOST_KINDS)))

    assert judged(judge, shape, honest_kernel(shape)) is not None
