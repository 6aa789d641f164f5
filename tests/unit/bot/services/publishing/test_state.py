"""What is stored of a publication reads as it was written; each error has its outcome."""

from dataclasses import replace

import pytest

from bot.domain.errors import UserError
from bot.domain.publication import PublishChange, Published, PublishedDraft, UnsoundTaskError
from bot.domain.tasks.lint import CheckStep, Finding, Level, TaskReport
from bot.services.publishing.state import PublicationState, outcome_of, outcome_of_error
from runners.contract.runner import RunnerError
from tests.doubles.place import Place

BAD = Finding(Level.ERROR, "b.py", "got passed, expected crashed")
REPORT = TaskReport("add", "CPU", (BAD,), "missing GPU type H100")


def test_a_state_survives_being_stored() -> None:
    outcome = outcome_of_error("Leaderboard add", UnsoundTaskError(REPORT, "short"))
    steps = (CheckStep("CPU", "a.py", "test", 3, 5), CheckStep("CPU", "b.py", finding=BAD))
    state = PublicationState(begun=("x",), steps=steps, publishing=True, outcome=outcome)
    assert PublicationState.model_validate_json(state.model_dump_json()) == state
    assert outcome.report == REPORT
    assert PublicationState.model_validate_json("{}") == PublicationState()


@pytest.mark.parametrize(
    ("error", "code", "words", "reason"),
    [
        (UnsoundTaskError(REPORT, "short"), "unsound-task", "", "short"),
        (UserError("bad-gpu", "no such type"), "bad-gpu", "no such type", "no such type"),
        (RunnerError("gone"), "runner", "Internal error: gone. Your task is not at fault.", "gone"),
        (RuntimeError("a defect"), "incident", "report incident", "report incident"),
    ],
)
def test_each_error_has_its_code_and_its_words(
    error: Exception, code: str, words: str, reason: str
) -> None:
    outcome = outcome_of_error("Leaderboard add", error)
    assert (outcome.code, outcome.board) == (code, None)
    assert words in outcome.message
    assert reason in outcome.reason
    assert "a defect" not in outcome.message


async def test_a_published_board_is_named_with_where_its_task_was_not_run(place: Place) -> None:
    report = TaskReport("add", "H100", (), "missing GPU type H100")
    released = PublishedDraft(
        Published(place.board, 3, PublishChange.NEW_VERSION, "faster"), (report,)
    )
    outcome = outcome_of(released, before=2)
    assert (outcome.board, outcome.before, outcome.version) == (place.board.id, 2, 3)
    assert (outcome.change, outcome.note) == (PublishChange.NEW_VERSION, "faster")
    assert outcome.checked == (("H100", "missing GPU type H100"),)
    assert outcome_of(replace(released, grading="It grades."), before=2).grading == "It grades."
