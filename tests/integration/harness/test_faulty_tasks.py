"""Tasks whose own code is at fault: no honest kernel may be blamed for it."""

from collections.abc import Iterator

import pytest

from runners.contract.evaluation import Limits
from runners.contract.verdict import Verdict
from tests.doubles.judging import SORT, Harness, make_judging, make_sort_task, serving

EQUAL, SORTED = "torch.equal(output, ref_kernel(data))", "torch.sort(data[0]).values"
IN_DOUBLES = (
    SORT.replace(SORTED, "-data[0]")
    .replace("(size, generator=generator)", "(100_000 * size, generator=generator)")
    .replace(EQUAL, "torch.allclose(output.double(), ref_kernel(data).double(), rtol=1e-6)")
)
"""A check in double precision, which takes more memory than its limit for any output."""
BY_NAME = SORT.replace(SORTED, "torch.sort(data[0], stable=True)").replace(
    EQUAL, "torch.equal(output.values, ref_kernel(data).values)"
)
"""A check that reads the parts of an output by the names that torch gives them."""
AS_LIST = SORT.replace(SORTED, f"[*{SORTED}.tolist(), *range(2000)]").replace(
    EQUAL, "output == ref_kernel(data)"
)
"""An output with more numbers than can be described."""
PRODUCT = SORT.replace(SORTED, "10 ** (50 * len(data[0]))").replace(
    EQUAL, "output == ref_kernel(data)"
)
"""An output that is an integer of more digits than Python reads."""


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with serving() as served:
        yield served


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "kernel", "words"),
    [
        (IN_DOUBLES, "-data[0]", "check_implementation failed: RuntimeError"),
        (BY_NAME, "torch.sort(data[0], stable=True)", "has no attribute 'values'"),
        (AS_LIST, f"[*{SORTED}.tolist(), *range(2000)]", "ref_kernel has too many parts"),
        (PRODUCT, "10 ** (50 * len(data[0]))", "an integer of more than 4,300 digits"),
    ],
)
def test_a_task_that_no_kernel_can_meet_is_to_blame(
    harness: Harness, reference: str, kernel: str, words: str
) -> None:
    source = f"import torch\ndef custom_kernel(data):\n    return {kernel}\n"
    order = make_judging(source, task=make_sort_task(reference), limits=Limits(memory=128 << 20))

    evaluation = harness.evaluate(order)

    assert (evaluation.verdict, words in evaluation.message) == (Verdict.TASK_ERROR, True)
