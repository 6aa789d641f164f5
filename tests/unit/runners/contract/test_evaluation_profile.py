import pytest
from pydantic import ValidationError

from runners.contract.evaluation import ProfileOptions
from runners.contract.task import Workload
from tests.doubles.factories import make_task

TASK = make_task(benchmarks=(Workload(args={"size": 1}), Workload(args={"size": 2})))


def test_one_benchmark_or_all_are_profiled() -> None:
    assert ProfileOptions().select_benchmark(TASK) == TASK
    assert ProfileOptions(benchmark=1).select_benchmark(TASK).benchmarks == TASK.benchmarks[1:]
    with pytest.raises(IndexError):
        ProfileOptions(benchmark=2).select_benchmark(TASK)


@pytest.mark.parametrize(
    "wrong", [{"kernel_name": ""}, {"kernel_name": "a\0b"}, {"launch_count": 0}, {"benchmark": -1}]
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProfileOptions.model_validate(wrong)
