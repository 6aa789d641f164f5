import pytest

from runners.contract.gpus import floor_ns, floors
from runners.contract.task import TaskDefinition, Workload
from tests.doubles.factories import make_task

SMALL, LARGE = (Workload(args={"size": size}) for size in (3_350_000, 13_400_000))


def task(**changes: object) -> TaskDefinition:
    return make_task(**({"bytes": "size", "benchmarks": (SMALL, LARGE)} | changes))


def test_memory_gives_a_floor() -> None:
    assert floor_ns(task(), LARGE, "H100") == pytest.approx(4000.0)


def test_arithmetic_gives_one_at_the_fastest_rate_there_is() -> None:
    found = floor_ns(task(flops="1979000*size"), LARGE, "H100")
    assert found == pytest.approx(13.4e6)


@pytest.mark.parametrize(
    ("changes", "gpu"),
    [
        ({}, "CPU"),
        ({"bytes": None}, "H100"),
        ({"lower_bound": False}, "H100"),
        ({"bytes": "sze"}, "H100"),
        ({"bytes": "0*size"}, "H100"),
    ],
)
def test_what_is_not_known_has_no_floor(changes: dict[str, object], gpu: str) -> None:
    assert floor_ns(task(**changes), LARGE, gpu) is None
    assert floors(task(**changes), gpu) == {}


def test_every_benchmark_has_its_own() -> None:
    found = floors(task(), "H100")
    assert found == {SMALL.spec: pytest.approx(1000.0), LARGE.spec: pytest.approx(4000.0)}
