"""Tests of the table and the roofline of a submission's benchmarks."""

from dataclasses import replace

import pytest

from bot.domain.ids import SubmissionId
from bot.domain.reference_times import OtherRun, OtherTimes, Work
from bot.domain.scoring import ScoreValue
from bot.reports.benchmarks import HEIGHT, WIDTH, benchmark_report, benchmark_table, roofline
from runners.contract.comparison import Ratio
from runners.contract.evaluation import CaseKind
from runners.contract.gpus import GPU_TYPES
from runners.contract.task import RankingBy, Workload
from runners.contract.verdict import Verdict
from tests.doubles.factories import make_case, make_evaluation, make_measurement, make_task

PEAK = GPU_TYPES["H100"].peak
TIMED = ((1, "a", ScoreValue(1_000.0, 1.0)), (2, "b", ScoreValue(2_000.0, 1.0)))
STREAM = Work(flops=1e5, bytes=1e6, peak=PEAK)
HEAVY = Work(flops=1e9, bytes=1e5, peak=PEAK)


def test_a_factor_above_one_means_that_this_run_is_faster() -> None:
    other = OtherRun("reference", {"a": ScoreValue(3_000.0, 1.0)})
    table = benchmark_table(TIMED, OtherTimes((other,), {"a": STREAM, "b": HEAVY}))
    assert table is not None
    first, second = table.rows
    assert first.against["reference"].factor == "3.0x"
    assert first.against["reference"].at > table.here > 0  # slower is further right
    assert second.against == {}
    assert (table.low, table.high) == ("0.87x", "3.4x")


def test_the_reference_has_the_time_that_it_had_in_turn_with_the_run_not_that_of_its_own() -> None:
    in_turn = Ratio(ratio=0.5, half_width=0.01, rounds=3)
    measured = make_measurement(1_000.0).model_copy(update={"vs_reference": in_turn})
    cases = [
        make_case(CaseKind.BENCHMARK, spec="a", measurement=measured),
        make_case(CaseKind.BENCHMARK, spec="b"),
    ]
    times = {"a": ScoreValue(8_000.0, 1.0), "b": ScoreValue(3_000.0, 1.0)}
    others = (OtherRun("reference", times), OtherRun("first", times, SubmissionId(7)))
    table = benchmark_report(make_evaluation(cases=tuple(cases)), OtherTimes(others)).table
    factors = [[mark.factor for mark in row.against.values()] for row in table.rows]
    assert factors == [["2.0x", "8.0x"], ["3.0x", "3.0x"]]


@pytest.mark.parametrize(
    ("ranking_by", "verdict", "words"),
    [
        (
            RankingBy.GEOM,
            Verdict.PASSED,
            "ranked by the geometric mean of its benchmarks' times: 2.000 µs",
        ),
        (RankingBy.MEAN, Verdict.PASSED, "ranked by the mean time of its benchmarks: "),
        (RankingBy.LAST, Verdict.CRASHED, "ranked by the time of the last benchmark"),
    ],
)
def test_of_several_benchmarks_the_time_that_ranks_is_told(
    ranking_by: RankingBy, verdict: Verdict, words: str
) -> None:
    pair = tuple(Workload(args={"size": n}) for n in (1, 2))
    task = make_task(benchmarks=pair, ranking_by=ranking_by)
    cases = tuple(
        make_case(CaseKind.BENCHMARK, spec=each.spec, measurement=make_measurement(time))
        for each, time in zip(pair, (1_000.0, 4_000.0), strict=True)
    )
    found = make_evaluation(cases=cases, verdict=verdict)
    assert benchmark_report(found, OtherTimes(task=task)).combined.startswith(words)
    assert not benchmark_report(found, OtherTimes(task=make_task())).combined


def test_a_run_that_is_too_noisy_to_be_ranked_has_no_time_that_ranks() -> None:
    pair = tuple(Workload(args={"size": n}) for n in (1, 2))
    cases = tuple(
        make_case(CaseKind.BENCHMARK, spec=each.spec, measurement=make_measurement(1e6, 0.5e6))
        for each in pair
    )
    found = benchmark_report(
        make_evaluation(cases=cases), OtherTimes(task=make_task(benchmarks=pair))
    )
    assert found.combined == "ranked by the time of the last benchmark"


def test_the_speed_of_light_is_shown_only_if_memory_limits() -> None:
    table = benchmark_table(TIMED, OtherTimes((), {"a": STREAM, "b": HEAVY}))
    assert [each.share for each in table.rows] == [pytest.approx(100 * 1e6 / 3.35e12 / 1e-6), None]
    assert table.has_shares


@pytest.mark.parametrize(
    "found", [OtherTimes(), OtherTimes((OtherRun("first", {}),), {"a": HEAVY})]
)
def test_without_anything_to_compare_the_table_has_the_times_alone(found: OtherTimes) -> None:
    table = benchmark_table(TIMED, found)
    assert [each.value for each in table.rows] == [value for _, _, value in TIMED]
    assert not table.others
    assert not table.has_shares


def test_a_point_is_where_its_rates_are_and_below_the_roofs() -> None:
    drawn = roofline(TIMED, {"a": STREAM, "b": HEAVY})
    assert drawn is not None
    stream, heavy = drawn.points
    assert (stream.operations, stream.bytes) == ("100 G", "1 T")
    assert stream.of_memory == pytest.approx(100 / 3.35)
    assert heavy.of_fp32 == pytest.approx(100 * 5e14 / 67e12)
    assert stream.x < heavy.x
    assert stream.y > heavy.y  # from the top
    assert (drawn.memory, drawn.fp32, drawn.fastest) == ("3.35 T", "67 T", "1.98 P")
    for name, path in drawn.roofs:
        corners = [tuple(map(float, each.split())) for each in path[1:].split("L")]
        assert corners == sorted(corners), name
        assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in corners)


@pytest.mark.parametrize("flops", [0.0, 1.0, 1e15])
def test_the_figure_can_be_drawn_for_any_flops_and_bytes(flops: float) -> None:
    drawn = roofline(TIMED, {"a": replace(STREAM, flops=flops), "b": replace(HEAVY, bytes=0.0)})
    assert (drawn is None) == (flops == 0)


def test_without_the_tasks_flops_and_bytes_there_is_no_roofline() -> None:
    assert roofline(TIMED, None) is None
    assert roofline(TIMED, {}) is None
