import pytest

from bot.domain.reference_times import speed_of_light
from runners.contract.task import RankingBy, TaskDefinition, Workload
from tests.doubles.factories import make_task


def task(**changes: object) -> TaskDefinition:
    """Two benchmarks which move 3.35 and 13.4 MB: 1 µs and 4 µs on an H100."""
    sizes = (Workload(args={"size": 3_350_000}), Workload(args={"size": 13_400_000}))
    return make_task(**({"bytes": "size", "benchmarks": sizes} | changes))


@pytest.mark.parametrize(
    ("by", "least_ns"),
    [(RankingBy.LAST, 4000.0), (RankingBy.MEAN, 2500.0), (RankingBy.GEOM, 2000.0)],
)
def test_it_is_combined_as_the_times_are(by: RankingBy, least_ns: float) -> None:
    assert speed_of_light(task(ranking_by=by), "H100") == pytest.approx(least_ns)


@pytest.mark.parametrize(
    ("changes", "gpu"),
    [
        ({}, "CPU"),
        ({"bytes": None}, "H100"),
        ({"lower_bound": False}, "H100"),
        ({"bytes": "sze"}, "H100"),
        ({"flops": "1000*size"}, "H100"),
        ({"benchmarks": ()}, "H100"),
    ],
)
def test_what_is_not_certain_is_not_said(changes: dict[str, object], gpu: str) -> None:
    assert speed_of_light(task(**changes), gpu) is None


def test_little_arithmetic_leaves_memory_the_limit() -> None:
    assert speed_of_light(task(flops="5*size"), "H100") == pytest.approx(4000.0)
