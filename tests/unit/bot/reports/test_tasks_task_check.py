"""A checked task is called sound only when it was run."""

import pytest

from bot.domain.tasks.lint import CheckStep, Finding, Level, TaskReport
from bot.reports.blocks import Text, Tone
from bot.reports.tasks import step_line, task_check_report

HINT = Finding(Level.WARNING, "task.yml", "no heading")
FAULT = Finding(Level.ERROR, "task.yml", "no answer")


@pytest.mark.parametrize(
    ("findings", "obstacle", "title"),
    [
        ((HINT,), "", "add on H100: ready to publish"),
        ((HINT, FAULT), "", "add on H100: errors to fix"),
        ((HINT,), "missing GPU type H100", "add on H100: well-formed, but not run"),
    ],
)
def test_the_title_says_what_was_found(
    findings: tuple[Finding, ...], obstacle: str, title: str
) -> None:
    assert task_check_report(TaskReport("add", "H100", findings, obstacle)).title == title


def test_each_finding_and_what_hindered_the_run_has_a_line() -> None:
    report = task_check_report(TaskReport("add", "H100", (HINT,), "missing GPU type H100"))
    assert report.blocks == (
        Text("warning  task.yml: no heading"),
        Text("its solutions were not run: missing GPU type H100", Tone.BAD),
    )


def test_who_grades_has_the_first_line_and_an_open_choice_the_title() -> None:
    found = TaskReport("add", "H100", (FAULT,), grading="They disagree.", undecided=True)
    report = task_check_report(found)
    assert report.title == "add on H100: choose the grader"
    assert report.blocks[0] == Text("They disagree.")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (CheckStep("CPU", "fast.py"), "fast.py: waiting"),
        (CheckStep("CPU", "fast.py", "build"), "fast.py: build"),
        (CheckStep("CPU", "fast.py", "test", 3, 5), "fast.py: test 3/5"),
        (CheckStep("CPU", "add", finding=HINT), "add: no heading"),
        (CheckStep("CPU", "no", finding=HINT), "no heading"),
    ],
)
def test_a_run_is_told_as_it_stands(step: CheckStep, words: str) -> None:
    assert step_line(step, with_gpu=False) == words
    assert step_line(step, with_gpu=True) == f"CPU: {words}"
