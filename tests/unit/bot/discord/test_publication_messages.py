"""What is shown of a check: every run while it moves, every finding at its end, within limits."""

from unittest.mock import Mock

import discord

from bot.discord.escaping import MESSAGE_LIMIT
from bot.discord.publication_messages import live_text, outcome_report
from bot.discord.publication_thread import PublicationThread
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.publication import PublishChange, Published, PublishedDraft, UnsoundTaskError
from bot.domain.tasks.grading import HOW_TO_CHOOSE
from bot.domain.tasks.lint import CheckStep, Finding, Level, TaskReport
from bot.reports.blocks import Report, Text, Tone
from bot.services.publishing.state import outcome_of, outcome_of_error
from tests.doubles.place import Place

GOOD = Finding(Level.INFO, "a.py", "passed, as expected")
BAD = Finding(Level.ERROR, "b.py", "got passed, expected crashed")


def lines(report: Report) -> list[tuple[str, Tone]]:
    return [(each.text, each.tone) for each in report.blocks if isinstance(each, Text)]


def test_a_thread_survives_being_stored() -> None:
    thread = PublicationThread(channel=1, user=2, thread=3, direct=True, live=4, told=1)
    assert PublicationThread.model_validate_json(thread.model_dump_json()) == thread


def test_it_starts_in_the_channel_or_in_the_parent_of_a_thread() -> None:
    interaction = Mock(spec=discord.Interaction, channel_id=5, id=3)
    interaction.user.id = 9
    interaction.channel = Mock(spec=discord.TextChannel)
    assert PublicationThread.of_interaction(interaction) == PublicationThread(
        channel=5, user=9, answer="discord:3"
    )
    interaction.channel = Mock(spec=discord.Thread, parent_id=4)
    assert PublicationThread.of_interaction(interaction) == PublicationThread(
        channel=4, user=9, answer="discord:3"
    )


def test_the_live_message_has_a_line_for_each_run_and_what_is_wrong_first() -> None:
    steps = (
        CheckStep("CPU", "w.py"),
        CheckStep("CPU", "a.py", finding=GOOD),
        CheckStep("CPU", "fast.py", "test", 3, 5),
        CheckStep("CPU", "b.py", finding=BAD),
    )
    assert live_text("adding", steps, tries=1).splitlines() == [
        "**Checking the task of adding**: 2 of 4 runs have ended",
        "> 🔴 b.py: got passed, expected crashed",
        "> ▶️ fast.py: test 3/5",
        "> 🟢 a.py: passed, as expected",
        "> ▫️ w.py: waiting",
    ]


def test_what_was_stopped_is_counted_once_the_check_has_ended() -> None:
    steps = (CheckStep("CPU", "w.py"), CheckStep("CPU", "a.py", finding=GOOD))
    assert live_text("adding", steps, tries=1, has_ended=True).splitlines() == [
        "**Checking the task of adding**: 1 of 2 runs have ended, 1 stopped",
        "> 🟢 a.py: passed, as expected",
    ]
    assert live_text("adding", (), tries=1, has_ended=True).endswith(": nothing was run")


def test_gpu_types_are_named_when_there_are_several() -> None:
    steps = (CheckStep("CPU", "a.py"), CheckStep("H100", "a.py"))
    assert "> ▫️ H100: a.py: waiting" in live_text("adding", steps, tries=1)


def test_before_the_first_run_and_after_a_restart_it_says_so() -> None:
    assert live_text("adding", (), tries=1) == "**Checking the task of adding**: reading its files"
    assert "started again" in live_text("adding", (), tries=2)


def test_hundreds_of_runs_fit_into_one_message() -> None:
    steps = tuple(CheckStep("CPU", f"solutions/wrong/{'_' * 90}{n}.py") for n in range(300))
    text = live_text("a" * 64, steps, tries=2)
    assert len(text) <= MESSAGE_LIMIT
    shown = text.count("▫️")
    assert text.endswith(f"> and {300 - shown} more")


def test_an_unsound_task_has_every_finding_shown_and_errors_first() -> None:
    error = UnsoundTaskError(TaskReport("add", "CPU", (GOOD, BAD)), "short")
    outcome = outcome_of_error("Leaderboard add", error)
    words = [text for text, _ in lines(outcome_report(outcome))]
    assert words[0].endswith("b.py: got passed, expected crashed")
    assert "Nothing was published" in words[1]
    assert words[2].endswith("a.py: passed, as expected")
    assert outcome.board is None


def test_the_grader_is_named_first_and_a_difference_with_how_to_choose() -> None:
    report = TaskReport("add", "CPU", (BAD,), grading="They disagree.", undecided=True)
    words = [text for text, _ in lines(outcome_report(outcome_of_error("add", _unsound(report))))]
    assert words[0] == "They disagree."
    assert words[-1] == f"Nothing was published. To publish, {HOW_TO_CHOOSE}."


def _unsound(report: TaskReport) -> UnsoundTaskError:
    return UnsoundTaskError(report, "short")


async def test_the_outcome_of_a_published_board_says_where_it_was_not_run(place: Place) -> None:
    report = TaskReport("add", "H100", (), "missing GPU type H100")
    outcome = outcome_of(
        PublishedDraft(Published(place.board, 1, PublishChange.CREATED), (report,)), before=0
    )
    name, told = place.board.name, lines(outcome_report(outcome))
    assert told[0] == (f"{name} on {_kinds(place.board)} is published.", Tone.GOOD)
    assert told[1] == ("not run on H100: missing GPU type H100", Tone.QUIET)
    graded = outcome_of(
        PublishedDraft(Published(place.board, 1, PublishChange.CREATED), (), "It grades."), before=0
    )
    assert lines(outcome_report(graded))[0] == ("It grades.", Tone.PLAIN)
    again = outcome_of(
        PublishedDraft(Published(place.board, 3, PublishChange.NEW_VERSION), ()), before=2
    )
    assert (again.before, again.board) == (2, place.board.id)
    assert lines(outcome_report(again))[0][0].endswith("now has task version 3.")


def _kinds(board: Board) -> str:
    return ", ".join(board.gpus)


def test_a_refusal_is_one_line() -> None:
    outcome = outcome_of_error("Leaderboard add", UserError("bad-gpu", "no"))
    assert lines(outcome_report(outcome)) == [("no", Tone.BAD)]
