"""A report is ok unless something speaks against publishing."""

import pytest

from bot.domain.tasks.lint import Finding, Level, TaskReport


@pytest.mark.parametrize(
    ("levels", "ok"),
    [((), True), ((Level.INFO, Level.WARNING), True), ((Level.INFO, Level.ERROR), False)],
)
def test_only_an_error_makes_a_report_not_ok(levels: tuple[Level, ...], ok: bool) -> None:  # noqa: FBT001 - a parameter of the table
    findings = tuple(Finding(level, "task.yml", "words") for level in levels)
    report = TaskReport("add", "CPU", findings)
    assert report.ok is ok
    assert (report.errors == ()) is ok


def test_a_task_that_was_not_run_is_not_ok_though_nothing_speaks_against_it() -> None:
    report = TaskReport("add", "H100", (), "missing GPU type H100")
    assert report.errors == ()
    assert not report.ok
