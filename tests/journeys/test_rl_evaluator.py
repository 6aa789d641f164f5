"""Somebody who trains a model on kernels, and calls the evaluator as its document does.

The document's kernels are `"..."`; here they are the least that can stand there.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from runners.evaluator import EvaluatorConfig, KernelEvaluator

pytestmark = [
    pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module"),
]  # fmt: skip

REFERENCE = "def forward(x): return x * 2"
RIGHT = "def forward(x): return x + x"
WRONG = "def forward(x): return x + 1"
MODEL = "import torch\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x): return x + x\n"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evaluator() -> AsyncIterator[KernelEvaluator]:
    config = EvaluatorConfig(timeout=180)
    async with KernelEvaluator(config) as opened:
        yield opened


async def test_a_single_evaluation_is_awaited(evaluator: KernelEvaluator) -> None:
    result = await evaluator.evaluate_single(
        ref_code="def forward(x): return x * 2",
        kernel_code=RIGHT,
        backend="triton",
    )
    assert (result["compiled"], result["correctness"]) == (True, True), result
    assert "speedup" in result


async def test_a_batch_comes_back_in_its_order(evaluator: KernelEvaluator) -> None:
    kernels = [WRONG, MODEL, "...", RIGHT]
    evaluations = [
        {"ref_code": REFERENCE, "kernel_code": kernel, "backend": "triton"} for kernel in kernels
    ]
    results = await evaluator.evaluate_batch(evaluations)
    assert [each["correctness"] for each in results] == [False, True, False, True]
    assert "elements differ" in (results[0]["error_message"] or "")
    assert "there is no `ModelNew`" in (results[2]["error_message"] or "")


async def test_reference_and_kernel_are_timed_beside_each_other(evaluator: KernelEvaluator) -> None:
    result = await evaluator.evaluate_single(
        REFERENCE, RIGHT, measure_performance=True, num_perf_trials=20
    )
    assert result["correctness"], result
    assert result["runtime_ms"] is not None
    assert result["baseline_runtime_ms"] is not None
