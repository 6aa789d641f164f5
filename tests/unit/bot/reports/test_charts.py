from bot.domain.leaderboard import GpuScaling, PersonScaling
from bot.domain.scoring import ScoreValue
from bot.reports.blocks import Chart, Table, Text
from bot.reports.charts import scaling_report
from tests.doubles.factories import make_board

ADA = PersonScaling("ada", {"H100": ScoreValue(1000, 5), "L4": ScoreValue(4000, 5)})
BOB = PersonScaling("bob", {"L4": ScoreValue(3000, 5)})


def test_each_time_is_compared_with_the_persons_fastest() -> None:
    report = scaling_report(GpuScaling(make_board(), ("H100", "L4"), (ADA, BOB)))
    _, table, chart = report.blocks
    assert isinstance(table, Table)
    assert table.rows == (("ada", "1.00 µs", "4.00 µs 4.0x"), ("bob", "", "3.00 µs"))
    assert isinstance(chart, Chart)
    assert [series.name for series in chart.series] == ["1. ada", "2. bob"]
    assert [point.at for point in chart.series[1].points] == ["L4"]


def test_no_more_people_are_drawn_than_can_be_told_apart() -> None:
    crowd = tuple(PersonScaling(f"p{n}", ADA.values) for n in range(20))
    report = scaling_report(GpuScaling(make_board(), ("H100", "L4"), crowd))
    table, chart = report.blocks[1:]
    assert isinstance(table, Table)
    assert isinstance(chart, Chart)
    assert (len(table.rows), len(chart.series)) == (20, 8)
    assert "the first 8 of 20 people" in chart.title


def test_one_gpu_type_needs_no_plot_and_nobody_no_table() -> None:
    one = scaling_report(GpuScaling(make_board(), ("L4",), (BOB,)))
    assert not any(isinstance(block, Chart) for block in one.blocks)
    nobody = scaling_report(GpuScaling(make_board(), (), ()))
    assert [type(block) for block in nobody.blocks] == [Text]
