"""Tests of what is requested of a publication and what it returns."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.board import SeasonRules
from bot.domain.ids import PersonId
from bot.domain.publication import PublishChange, Published, PublishRequest, UnsoundTaskError
from bot.domain.tasks.competition import CompetitionEntry
from bot.domain.tasks.lint import TaskReport
from tests.doubles.factories import NOON, make_board, make_task


def test_a_board_has_the_name_of_its_task_unless_the_request_has_another() -> None:
    task = make_task(name="sort")
    assert PublishRequest(PersonId(1)).board_name(task) == "sort"
    assert PublishRequest(PersonId(1), name="mine").board_name(task) == "mine"


def test_a_board_of_a_competition_has_what_the_file_says_unless_the_request_overrides_it() -> None:
    rules = SeasonRules(NOON, late_runs=True)
    entry = CompetitionEntry("double", "first", NOON, ("CPU",), rules)
    request = PublishRequest(PersonId(1), "Cup", competition=True, pins=(("CPU", "box"),))
    board = request.of_entry(entry)
    assert (board.name, board.gpus, board.deadline, board.rules) == ("first", ("CPU",), NOON, rules)
    assert (board.endless, board.competition, board.pins) == (False, False, request.pins)
    assert request.of_entry(replace(entry, deadline=None)).endless
    later = NOON + timedelta(days=1)
    overridden = replace(request, gpus=("L4",), deadline=later).of_entry(entry)
    assert (overridden.gpus, overridden.deadline, overridden.endless) == (("L4",), later, False)
    endless = replace(request, endless=True).of_entry(entry)
    assert (endless.deadline, endless.endless) == (None, True)


def test_a_publication_says_what_it_publishes() -> None:
    assert PublishRequest(PersonId(1), "sort").title == "Leaderboard sort"
    assert PublishRequest(PersonId(1), "Cup", competition=True).title == "Competition Cup"


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
