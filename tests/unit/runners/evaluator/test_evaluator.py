import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from runners.backends import fake
from runners.backends.fake import FakeRunner
from runners.evaluator import (
    BatchProgress,
    EvaluatorConfig,
    InfrastructureError,
    KernelEvaluator,
    KernelResult,
)
from runners.evaluator.config import JobError
from tests.doubles.kernels import make_job, told

SLOTS = 4


@pytest.fixture
async def runner() -> AsyncIterator[FakeRunner]:
    made = fake.create(slots={"H100": SLOTS})
    yield made
    await made.aclose()


@pytest.fixture
def evaluator(runner: FakeRunner) -> KernelEvaluator:
    return KernelEvaluator(EvaluatorConfig(), runner)


async def single(
    evaluator: KernelEvaluator, directive: str = "", **changes: object
) -> KernelResult:
    return await evaluator.evaluate_single(**make_job(told(directive), **changes))


async def until_started(runner: FakeRunner, count: int) -> None:
    async with asyncio.timeout(5):
        while runner.started < count:  # noqa: ASYNC110 - it has no event to wait for
            await asyncio.sleep(0.001)


async def test_a_batch_is_answered_in_order_whatever_becomes_of_each(
    evaluator: KernelEvaluator,
) -> None:
    directives = [
        "seconds=0.2 time_us=7", "verdict=wrong_answer", "error=boom", "lost", "time_us=3",
    ]  # fmt: skip
    jobs: list[dict[str, Any]] = [
        make_job(told(each), measure_performance=True) for each in directives
    ]
    jobs.append({"kernel_code": "no reference"})
    found = await evaluator.evaluate_batch(jobs)
    kinds = [each["metadata"]["error_kind"] for each in found]
    assert kinds == [None, "kernel", "infrastructure", "infrastructure", None, "request"]
    assert [each["runtime_ms"] for each in found] == [0.007, None, None, None, 0.003, None]
    assert [each["speedup"] for each in found[::4]] == pytest.approx([1 / 7, 1 / 3])
    assert "boom" in (found[2]["error_message"] or "")
    assert found[3]["metadata"]["exception_type"] == "InfrastructureError"


async def test_an_empty_batch_has_no_results(evaluator: KernelEvaluator) -> None:
    assert await evaluator.evaluate_batch([]) == []


async def test_it_can_stand_in_for_a_modal_evaluator(evaluator: KernelEvaluator) -> None:
    evaluator.config = SimpleNamespace(enabled=True, gpu_type="A100", timeout=60)
    assert (evaluator.config.timeout, evaluator.config.gpu_type) == (60, None)
    found = await evaluator.evaluate_single_batched(**make_job(told("")))
    assert found["correctness"] is True
    assert found["metadata"]["device"] == "H100"


async def test_a_failure_of_ours_is_raised_where_that_is_asked_for(runner: FakeRunner) -> None:
    evaluator = KernelEvaluator(EvaluatorConfig(return_exceptions=False), runner)
    with pytest.raises(InfrastructureError, match="boom"):
        await single(evaluator, "error=boom")
    with pytest.raises(JobError, match="precision"):
        await single(evaluator, precision="fp8")
    jobs = [make_job(told(each)) for each in ("seconds=60", "error=boom")]
    with pytest.raises(InfrastructureError, match="boom"):
        await asyncio.wait_for(evaluator.evaluate_batch(jobs), 5)
    assert (await single(evaluator, "verdict=crashed"))["correctness"] is False


async def test_the_same_job_is_evaluated_once(
    runner: FakeRunner, evaluator: KernelEvaluator
) -> None:
    first, *others = await asyncio.gather(*(single(evaluator) for _ in range(5)))
    again = await single(evaluator)
    assert runner.started == 1
    hits = [each["metadata"]["cache_hit"] for each in (first, *others, again)]
    assert hits == [False, *[True] * 5]
    again["metadata"]["mine"] = True
    assert "mine" not in (await single(evaluator))["metadata"]


@pytest.mark.parametrize(
    "changes",
    [
        {"num_correct_trials": 3}, {"precision": "bf16"}, {"backend": "cuda"}, {"ref_code": "x"},
        {"kernel_code": "y"},
    ],
)  # fmt: skip
async def test_another_job_is_not_taken_for_it(
    runner: FakeRunner, evaluator: KernelEvaluator, changes: dict[str, Any]
) -> None:
    job = make_job(told(""))
    await evaluator.evaluate_batch([job, job | changes])
    assert runner.started == 2


async def test_a_failure_of_ours_is_not_remembered(
    runner: FakeRunner, evaluator: KernelEvaluator
) -> None:
    for _ in range(2):
        found = await single(evaluator, "error=boom")
        assert found["metadata"]["cache_hit"] is False
    assert runner.started == 4


async def test_nothing_is_kept_where_that_is_asked_for(runner: FakeRunner) -> None:
    evaluator = KernelEvaluator(EvaluatorConfig(cache_size=0), runner)
    assert [(await single(evaluator))["metadata"]["cache_hit"] for _ in range(2)] == [False] * 2


async def test_the_reference_is_timed_once_for_all_kernels_of_a_problem(
    runner: FakeRunner, evaluator: KernelEvaluator
) -> None:
    jobs = [
        make_job(told(f"time_us={number}"), measure_performance=True, num_correct_trials=trials)
        for number in range(1, 6)
        for trials in (1, 2)
    ]
    found = await evaluator.evaluate_batch(jobs)
    assert runner.started == 10 + 1
    assert {each["baseline_runtime_ms"] for each in found} == {0.001}


async def test_a_slow_one_delays_nobody_else(evaluator: KernelEvaluator) -> None:
    ended: list[int] = []
    jobs = [make_job(told(f"seconds={1.0 if n == 0 else 0.01} x={n}")) for n in range(30)]

    def note(progress: BatchProgress) -> None:
        assert (progress.done, progress.total) == (len(ended) + 1, 30)
        ended.append(progress.index)

    await evaluator.evaluate_batch(jobs, progress=note)
    assert ended[-1] == 0
    assert sorted(ended) == list(range(30))


async def test_a_cancelled_batch_leaves_nothing_running(
    runner: FakeRunner, evaluator: KernelEvaluator
) -> None:
    jobs = [make_job(told(f"seconds=60 x={n}"), measure_performance=True) for n in range(9)]
    batch = asyncio.create_task(evaluator.evaluate_batch(jobs))
    await until_started(runner, SLOTS)
    batch.cancel()
    await asyncio.wait_for(asyncio.wait({batch}), 5)
    assert batch.cancelled()
    found = await asyncio.wait_for(asyncio.gather(*(single(evaluator) for _ in range(3))), 2)
    assert all(each["correctness"] for each in found)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_who_leaves_does_not_take_the_work_from_who_stays(
    runner: FakeRunner, evaluator: KernelEvaluator
) -> None:
    leaving, staying = (asyncio.create_task(single(evaluator, "seconds=0.2")) for _ in range(2))
    await until_started(runner, 1)
    leaving.cancel()
    assert (await staying)["correctness"] is True
    assert runner.started == 1


async def test_a_closed_evaluator_says_so() -> None:
    async with KernelEvaluator(EvaluatorConfig(backend="fake")) as evaluator:
        assert (await single(evaluator))["correctness"] is True
    assert "closed" in ((await single(evaluator))["error_message"] or "")


def test_it_is_imported_without_the_bot_a_database_or_torch() -> None:
    code = (
        "import sys, runners.evaluator\n"
        "unwanted = {'bot', 'asyncpg', 'discord', 'torch', 'numpy'} & {*sys.modules}\n"
        "sys.exit(', '.join(unwanted) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
