"""A checked task is called sound only when it was run."""

import pytest

from bot.domain.task_report import Finding, Level, TaskReport
from bot.reports.blocks import Text, Tone
from bot.reports.task_check import task_report

HINT = Finding(Level.WARNING, "task.yml", "no heading")
FAULT = Finding(Level.ERROR, "task.yml", "no answer")


@pytest.mark.parametrize(
    ("findings", "obstacle", "title"),
    [
        ((HINT,), "", "add on H100: sound"),
        ((HINT, FAULT), "", "add on H100: to be mended"),
        ((HINT,), "missing GPU type H100", "add on H100: well-formed, but not run"),
    ],
)
def test_the_title_says_what_was_found(
    findings: tuple[Finding, ...], obstacle: str, title: str
) -> None:
    assert task_report(TaskReport("add", "H100", findings, obstacle)).title == title


def test_each_finding_and_what_hindered_the_run_has_a_line() -> None:
    report = task_report(TaskReport("add", "H100", (HINT,), "missing GPU type H100"))
    assert report.blocks == (
        Text("warning  task.yml: no heading"),
        Text("its solutions were not run: missing GPU type H100", Tone.BAD),
    )
