"""The evaluator over the real runner of this machine: real judges, real candidates."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
import pytest_asyncio

from runners.backends import local_process
from runners.contract.evaluation import CPU
from runners.contract.runner import Runner
from runners.evaluator import EvaluatorConfig, KernelEvaluator, KernelResult
from tests.doubles.kernels import (
    BROKEN,
    BY_SEED,
    ENDLESS,
    LINEAR,
    RAISING,
    RENAMED,
    RIGHT,
    SHAPELESS,
    WRONG,
    make_job,
)

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

FORWARD = "return torch.relu(self.linear(x))"
LARGE = LINEAR.replace("randn(16, 32)", "randn(2048, 512)").replace("[32]", "[512]")
SLOWER = RIGHT.replace(FORWARD, f"[self.linear(x) for _ in range(8)]\n        {FORWARD}")
HOSTILE = {
    "remembers its first answer": RIGHT.replace(
        FORWARD, f"self.kept = self.kept if hasattr(self, 'kept') else ({FORWARD[7:]})\n"
        "        return self.kept"
    ),
    "patches the comparison": "import torch\n"
    "torch.isclose = torch.allclose = lambda *a, **k: torch.tensor(True)\n" + WRONG,
    "clears its input": RIGHT.replace(FORWARD, f"out = ({FORWARD[7:]}); x.zero_(); return out"),
    "looks for the reference": RIGHT.replace(
        FORWARD, "from reference import Model\n        return Model(32)(x)"
    ),
    "returns what lies in memory": RIGHT.replace(FORWARD, "return torch.empty(16, 32)"),
    "leaves at once": RIGHT.replace(FORWARD, "import os; os._exit(0)"),
    "trains its own weights": RIGHT.replace(
        FORWARD, "self.linear.weight.zero_(); return torch.relu(self.linear(x))"
    ),
}  # fmt: skip


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def runner() -> AsyncIterator[Runner]:
    made = local_process.create(slots={CPU: 1})
    yield made
    await made.aclose()


@pytest.fixture(scope="module")
def evaluator(runner: Runner) -> KernelEvaluator:
    return KernelEvaluator(EvaluatorConfig(timeout=20, rounds=2), runner)


async def judge(evaluator: KernelEvaluator, kernel: str, **changes: object) -> KernelResult:
    return await evaluator.evaluate_single(**make_job(kernel, **changes))


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
async def test_right_kernels_are_right_in_every_precision(
    evaluator: KernelEvaluator, precision: str
) -> None:
    jobs = [make_job(each, precision=precision) for each in (RIGHT, RENAMED, BY_SEED)]
    for found in await evaluator.evaluate_batch(jobs):
        assert (found["correctness"], found["tests_passed"]) == (True, 2), found["error_message"]


@pytest.mark.parametrize(
    ("kernel", "flags", "words"),
    [
        (WRONG, (True, True), "wrong answer: 512 of 512 elements differ"),
        (RAISING, (True, True), "ValueError: boom (line"),
        (BROKEN, (True, False), "SyntaxError"),
        (SHAPELESS, (False, False), "there is no `ModelNew`"),
    ],
)
async def test_a_wrong_kernel_is_told_what_is_wrong(
    evaluator: KernelEvaluator, kernel: str, flags: tuple[bool, bool], words: str
) -> None:
    found = await judge(evaluator, kernel)
    assert (found["format_ok"], found["compiled"], found["correctness"]) == (*flags, False)
    assert words in (found["error_message"] or "")
    assert found["metadata"]["error_kind"] == "kernel"


@pytest.mark.parametrize("kernel", HOSTILE.values(), ids=HOSTILE.keys())
async def test_no_trick_makes_a_kernel_right(evaluator: KernelEvaluator, kernel: str) -> None:
    found = await judge(evaluator, kernel)
    assert found["correctness"] is False
    assert found["metadata"]["error_kind"] == "kernel", found["error_message"]


async def test_a_kernel_that_hangs_is_ended_and_the_next_one_judged(runner: Runner) -> None:
    evaluator = KernelEvaluator(EvaluatorConfig(timeout=2), runner)
    hanging, right = await evaluator.evaluate_batch([make_job(ENDLESS), make_job(RIGHT)])
    assert "timed out" in (hanging["error_message"] or "")
    assert right["correctness"] is True


@pytest.mark.parametrize(
    "reference",
    ["import nothing_such", LINEAR.replace("torch.relu", "torch.no_such"), "class Model: ..."],
)
async def test_a_broken_reference_is_not_the_kernels_fault(
    evaluator: KernelEvaluator, reference: str
) -> None:
    found = await judge(evaluator, RIGHT, ref_code=reference, measure_performance=True)
    assert found["metadata"]["error_kind"] == "reference"
    assert found["correctness"] is False


async def test_a_speed_up_is_what_the_clock_says(evaluator: KernelEvaluator) -> None:
    timed: dict[str, Any] = {
        "measure_performance": True, "num_perf_trials": 10, "ref_code": LARGE,
    }  # fmt: skip
    jobs = [make_job(each, **timed) for each in (RIGHT, SLOWER)]
    same, slower = await evaluator.evaluate_batch(jobs)
    assert same["baseline_runtime_ms"] == slower["baseline_runtime_ms"]
    for found in (same, slower):
        assert found["speedup"] == pytest.approx(ratio_if_told_apart(found))
    assert slower["runtime_ms"] > 2 * same["runtime_ms"]  # type: ignore[operator]  # both were timed


def ratio_if_told_apart(found: KernelResult) -> float | None:
    """The speed-up by the published times; None where a busy machine let the judge see neither."""
    both = [found["metadata"][key] for key in ("ref_runtime_stats", "runtime_stats")]
    baseline, runtime = found["baseline_runtime_ms"], found["runtime_ms"]
    assert baseline is not None
    assert runtime is not None
    seen = [time > each["resolution"] for time, each in zip((baseline, runtime), both, strict=True)]
    return baseline / runtime if all(seen) else None


async def test_a_model_has_hundreds_of_weights(evaluator: KernelEvaluator) -> None:
    deep = LINEAR.replace(
        "nn.Linear(width, width)", "nn.Sequential(*(nn.Linear(width, width) for _ in range(400)))"
    )
    kernel = deep.partition("def get_inputs")[0].replace("Model(", "ModelNew(")
    found = await judge(evaluator, kernel, ref_code=deep)
    assert found["correctness"] is True, found["error_message"]


async def test_a_cancellation_ends_the_judge_and_a_closed_evaluator_leaves_nothing() -> None:
    evaluator = KernelEvaluator(EvaluatorConfig(slots={CPU: 1}, timeout=600))
    assert (await judge(evaluator, RIGHT))["correctness"] is True
    ours = {each.pid for each in psutil.Process().children(recursive=True)}
    task = asyncio.create_task(judge(evaluator, ENDLESS))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait_for(asyncio.wait({task}), 10)
    assert task.cancelled()
    assert (await judge(evaluator, WRONG))["correctness"] is False
    await evaluator.aclose()
    left = [each for each in psutil.Process().children(recursive=True) if each.pid not in ours]
    assert not left


async def test_a_judge_that_is_killed_costs_nobody_a_result() -> None:
    async with KernelEvaluator(EvaluatorConfig(slots={CPU: 1}, timeout=60)) as evaluator:
        before = {each.pid for each in psutil.Process().children()}
        await judge(evaluator, WRONG)
        jobs = [make_job(f"{RIGHT}# {n}", num_correct_trials=100) for n in range(3)]
        batch = asyncio.create_task(evaluator.evaluate_batch(jobs))
        await asyncio.sleep(0.3)
        (harness,) = [e for e in psutil.Process().children() if e.pid not in before]
        harness.kill()
        found = await batch
    assert [each["tests_passed"] for each in found] == [100] * 3
    assert [each["metadata"]["error_kind"] for each in found] == [None] * 3
