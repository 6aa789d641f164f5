from datetime import date

from bot.domain.records import DayCount, InstallationStats, Usage
from bot.reports.admin import stats_report
from bot.reports.blocks import Table, Text
from runners.contract.verdict import Verdict


def test_counts_queue_days_and_verdicts_are_shown() -> None:
    stats = InstallationStats(
        people=3,
        boards=2,
        days=(DayCount(date(2026, 11, 1), 8, 3),),
        verdicts={Verdict.CRASHED: 2, Verdict.PASSED: 6},
        backlog={"H100": {"queued": 4, "running": 1}, "CPU": {}},
        usage=(
            Usage("add", "Ada", "H100", 2, 90.0),
            Usage("add", "Bob", "H100", 1, 30.0),
            Usage("sort", "Bob", "CPU", 3, 7200.0),
        ),
    )
    report = stats_report(stats)
    assert report.blocks[0] == Text("3 accounts, 2 boards")
    tables = {block.title: block.rows for block in report.blocks if isinstance(block, Table)}
    assert tables == {
        "queue": (("CPU", "0", "0"), ("H100", "4", "1")),
        "last two weeks": (("2026-11-01", "8", "3"),),
        "verdicts": (("passed", "6 (75%)"), ("crashed", "2 (25%)")),
        "GPU time by board": (("sort", "CPU", "3", "2 h"), ("add", "H100", "3", "2 min")),
        "GPU time by person": (
            ("Bob", "CPU", "3", "2 h"),
            ("Ada", "H100", "2", "2 min"),
            ("Bob", "H100", "1", "30 s"),
        ),
    }


def test_an_idle_installation_says_so() -> None:
    report = stats_report(InstallationStats(0, 0, (), {}, {}))
    assert not any(isinstance(block, Table) for block in report.blocks)


def test_where_a_second_has_its_price_the_cost_is_told() -> None:
    usage = (Usage("add", "Ada", "H100", 2, 90.0), Usage("add", "Ada", "CPU", 1, 30.0))
    days, verdicts = (DayCount(date(2026, 11, 1), 3, 1),), {Verdict.PASSED: 3}
    stats = InstallationStats(1, 1, days, verdicts, {}, usage, prices={"H100": 0.001})
    *_, table = stats_report(stats).blocks
    assert isinstance(table, Table)
    assert [column.name for column in table.columns][-1] == "cost"
    assert [row[-1] for row in table.rows] == ["0.09", "-"]
