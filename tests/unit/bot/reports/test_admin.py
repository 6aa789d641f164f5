from datetime import date

from bot.domain.records import DayCount, InstallationStats
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
    )
    report = stats_report(stats)
    assert report.blocks[0] == Text("3 accounts, 2 boards")
    tables = {block.title: block.rows for block in report.blocks if isinstance(block, Table)}
    assert tables == {
        "queue": (("CPU", "0", "0"), ("H100", "4", "1")),
        "last two weeks": (("2026-11-01", "8", "3"),),
        "verdicts": (("passed", "6 (75%)"), ("crashed", "2 (25%)")),
    }


def test_an_idle_installation_says_so() -> None:
    report = stats_report(InstallationStats(0, 0, (), {}, {}))
    assert not any(isinstance(block, Table) for block in report.blocks)
