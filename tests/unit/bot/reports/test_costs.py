from datetime import date, timedelta

from bot.domain.costs import MODAL_PRICES, CostReport, Usage, UsageKind
from bot.domain.ids import PersonId
from bot.reports.blocks import Table, Text, Tone
from bot.reports.costs import LONGEST_NAME, costs_report

DAY = date(2026, 11, 2)
PRICES = {"H100": 0.001, "T4": 0.0001}
COLUMNS = 38
"""The columns that a phone has for a table."""


def usage(
    person: str = "Ada",
    seconds: float = 100.0,
    gpu: str = "H100",
    *,
    kind: UsageKind = UsageKind.SUBMISSION,
    board: str = "sort",
    day: date = DAY,
    number: int = 1,
) -> Usage:
    return Usage(day, board, PersonId(number), person, gpu, kind, 1, seconds)


def tables(found: CostReport, longest: int | None = None) -> dict[str, tuple[tuple[str, ...], ...]]:
    blocks = costs_report(found, longest).blocks
    return {each.title: each.rows for each in blocks if isinstance(each, Table)}


def test_tables_have_the_most_expensive_rows_first() -> None:
    lines = (
        usage("Ada", 5000.0, "T4", board="add"),
        usage("Bob", 2000.0, number=2),
        usage("Bob", 10.0, "CPU", number=3),
        usage("Ada", 30.0, day=DAY - timedelta(days=1)),
        usage("Carol", 40.0, kind=UsageKind.CHECK, board="", number=4),
    )
    assert tables(CostReport(7, lines, PRICES)) == {
        "by person": (
            ("Bob", "2,000 s", "$2.00"),
            ("Ada", "5,030 s", "$0.53"),
            ("Carol", "40.0 s", "$0.04"),
            ("Bob", "10.0 s", "-"),
        ),
        "by board": (
            ("sort", "2,040 s", "$2.03"),
            ("add", "5,000 s", "$0.50"),
            ("(checks)", "40.0 s", "$0.04"),
        ),
        "by GPU type": (
            ("H100", "2,070 s", "$2.07"),
            ("T4", "5,000 s", "$0.50"),
            ("CPU", "10.0 s", "-"),
        ),
        "by day": (("2026-11-02", "7,050 s", "$2.54"), ("2026-11-01", "30.0 s", "$0.03")),
    }


def test_time_that_counts_for_no_quota_is_in_the_sum_and_marked() -> None:
    kinds = (
        UsageKind.REJUDGE,
        UsageKind.REFERENCE,
        UsageKind.CONFIRMATION,
        UsageKind.FAULT,
        UsageKind.SUBMISSION,
    )
    found = CostReport(1, tuple(usage(kind=kind) for kind in kinds), PRICES)
    assert [row[0] for row in tables(found)["by person"]] == [
        "(comparisons)", "(own faults)", "(references)", "(rejudged)", "Ada",
    ]  # fmt: skip
    first, second, *_ = costs_report(found).blocks
    assert first == Text("In all: 500.0 s, $0.50.")
    words = "Of this, 400.0 s, $0.40 count for no quota: the lines in brackets."
    assert second == Text(words, Tone.QUIET)


def test_without_a_known_price_the_sums_have_no_cost() -> None:
    found = CostReport(1, (usage(), usage(kind=UsageKind.FAULT)), {})
    first, second, *_ = costs_report(found).blocks
    assert first == Text("In all: 200.0 s.")
    words = "Of this, 100.0 s count for no quota: the lines in brackets."
    assert second == Text(words, Tone.QUIET)


def test_a_table_is_as_wide_as_a_phone_whatever_the_names() -> None:
    names = ("x" * 300, "A" * 15, "Mr. \N{GRINNING FACE} Name of Many Words", "B")
    lines = tuple(
        usage(name, 1_234_567.0, "B200", board=name * 2, number=n) for n, name in enumerate(names)
    )
    found = CostReport(30, lines * 2, MODAL_PRICES)
    for block in costs_report(found, LONGEST_NAME).blocks:
        if isinstance(block, Table):
            rows = (tuple(column.name for column in block.columns), *block.rows)
            widths = [max(len(row[at]) for row in rows) for at in range(len(block.columns))]
            assert sum(widths) + 2 * (len(widths) - 1) <= COLUMNS, block.title
    assert max(len(row[0]) for row in tables(found)["by person"]) == 300


def test_a_long_table_shows_the_first_rows_and_how_many_there_are() -> None:
    lines = tuple(usage(f"p{n}", 100.0 + n, number=n) for n in range(25))
    found = tables(CostReport(1, lines, PRICES))
    assert [row[0] for row in found["by person, the first 10 of 25"]][:2] == ["p24", "p23"]


def test_if_nothing_was_used_the_report_says_so() -> None:
    report = costs_report(CostReport(1, (), PRICES))
    assert (report.title, report.blocks) == (
        "GPU costs, today (UTC)", (Text("no GPU time was used", Tone.QUIET),),
    )  # fmt: skip
    assert costs_report(CostReport(7, (), PRICES)).title == "GPU costs, last 7 days (UTC)"
