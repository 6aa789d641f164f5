"""A report is ok unless something speaks against publishing."""

import pytest

from bot.domain.task_report import Finding, Level, TaskReport


@pytest.mark.parametrize(
    ("levels", "ok"),
    [((), True), ((Level.INFO, Level.WARNING), True), ((Level.INFO, Level.ERROR), False)],
)
def test_only_an_error_makes_a_report_not_ok(levels: tuple[Level, ...], ok: bool) -> None:  # noqa: FBT001 - a parameter of the table
    findings = tuple(Finding(level, "task.yml", "words") for level in levels)
    assert TaskReport("add", findings).ok is ok
