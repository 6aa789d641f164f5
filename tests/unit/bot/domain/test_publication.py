"""Tests of what is requested of a publication and what it returns."""

import pytest

from bot.domain.ids import PersonId
from bot.domain.publication import PublishChange, Published, PublishRequest, UnsoundTaskError
from bot.domain.tasks.lint import TaskReport
from tests.doubles.factories import make_board, make_task


def test_a_board_has_the_name_of_its_task_unless_the_request_has_another() -> None:
    task = make_task(name="sort")
    assert PublishRequest(PersonId(1)).board_name(task) == "sort"
    assert PublishRequest(PersonId(1), name="mine").board_name(task) == "mine"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (PublishChange.CREATED, "sort on CPU is published."),
        (PublishChange.NEW_VERSION, "sort on CPU now has task version 2."),
        (PublishChange.CONFIGURED, "sort on CPU: configured, task version 2."),
        (PublishChange.UNCHANGED, "sort on CPU: unchanged, task version 2."),
    ],
)
def test_what_publishing_changed_is_said_in_a_sentence(change: PublishChange, words: str) -> None:
    assert Published(make_board(name="sort", gpus=("CPU",)), 2, change).summary == words


def test_an_unsound_task_brings_its_report() -> None:
    report = TaskReport("sort", "CPU", ())
    error = UnsoundTaskError(report, "two errors")
    assert (error.code, error.report, str(error)) == ("unsound-task", report, "two errors")
    undecided = TaskReport("sort", "CPU", (), undecided=True)
    assert UnsoundTaskError(undecided, "they disagree").code == "choose-grader"
