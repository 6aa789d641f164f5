import pytest

from runners.backends import modal_app
from runners.backends.modal_app.app import OFFERED, container_timeout_s, modal_gpu
from runners.contract.evaluation import CPU
from runners.contract.runner import RunnerError


@pytest.mark.parametrize(
    ("kind", "count", "asked"),
    [
        (CPU, 0, None),
        ("L4", 1, "L4"),
        ("H100", 1, "H100!"),
        ("H100", 8, "H100!:8"),
        ("A100", 1, "A100-40GB"),
        ("A100-80GB", 2, "A100-80GB:2"),
        ("A10", 4, "A10:4"),
    ],
)
def test_a_gpu_is_asked_for_by_the_exact_name_of_modal(
    kind: str, count: int, asked: str | None
) -> None:
    assert modal_gpu(kind, count) == asked


def test_more_gpus_than_a_machine_has_are_refused() -> None:
    with pytest.raises(RunnerError, match="at most 4"):
        modal_gpu("A10", 5)


def test_an_unknown_type_is_refused_with_those_there_are() -> None:
    with pytest.raises(RunnerError, match="no GPU type H9000; it has T4, L4"):
        modal_app.create(slots={"H9000": 1, "L4": 1})
    with pytest.raises(RunnerError, match="H9000"):
        modal_gpu("H9000", 1)


def test_there_are_nine_types() -> None:
    assert len(OFFERED) == 9


@pytest.mark.parametrize(
    ("harness_s", "limit"), [(0, 300), (160, 300), (161, 900), (3390, 3600), (7230, 10_800)]
)
def test_a_container_outlasts_its_harness(harness_s: float, limit: int) -> None:
    assert container_timeout_s(harness_s) == limit
