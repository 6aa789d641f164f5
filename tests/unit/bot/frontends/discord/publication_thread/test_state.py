"""What is told of a check: every run while it moves, every finding at its end, within limits."""

from bot.domain.board import Board
from bot.domain.task_report import CheckStep, Finding, Level, TaskReport
from bot.frontends.discord.publication_thread.state import live_text, published, refused, unsound
from bot.frontends.discord.words import MOST
from bot.reports.blocks import Tone
from bot.services.publishing.pipeline import Released, UnsoundTaskError
from bot.services.publishing.publish import Change, Published
from tests.doubles.place import Place

GOOD = Finding(Level.INFO, "a.py", "passed, as expected")
BAD = Finding(Level.ERROR, "b.py", "got passed; crashed is expected")


def test_the_live_message_has_a_line_for_each_run_and_what_is_wrong_first() -> None:
    steps = [
        CheckStep("CPU", "w.py"),
        CheckStep("CPU", "a.py", finding=GOOD),
        CheckStep("CPU", "fast.py", "test", 3, 5),
        CheckStep("CPU", "b.py", finding=BAD),
    ]
    assert live_text("adding", steps, tries=1).splitlines() == [
        "**Checking the task of adding**: 2 of 4 runs have ended",
        "> 🔴 b.py: got passed; crashed is expected",
        "> ▶️ fast.py: test 3/5",
        "> 🟢 a.py: passed, as expected",
        "> ▫️ w.py: waiting",
    ]


def test_gpu_types_are_named_when_there_are_several() -> None:
    steps = [CheckStep("CPU", "a.py"), CheckStep("H100", "a.py")]
    assert "> ▫️ H100: a.py: waiting" in live_text("adding", steps, tries=1)


def test_before_the_first_run_and_after_a_restart_it_says_so() -> None:
    assert live_text("adding", [], tries=1) == "**Checking the task of adding**: it is read"
    assert "begun anew" in live_text("adding", [], tries=2)


def test_hundreds_of_runs_fit_into_one_message() -> None:
    steps = [CheckStep("CPU", f"solutions/wrong/{'_' * 90}{n}.py") for n in range(300)]
    text = live_text("a" * 64, steps, tries=2)
    assert len(text) <= MOST
    shown = text.count("▫️")
    assert text.endswith(f"> and {300 - shown} more")


def test_an_unsound_task_is_told_with_every_finding() -> None:
    outcome = unsound(UnsoundTaskError(TaskReport("add", "CPU", (GOOD, BAD)), "short"))
    words = [text for text, _ in outcome.lines]
    assert words[0].endswith("a.py: passed, as expected")
    assert words[1].endswith("b.py: got passed; crashed is expected")
    assert "Nothing was published" in words[2]
    assert outcome.board is None


async def test_a_published_board_is_told_with_where_it_was_not_run(place: Place) -> None:
    report = TaskReport("add", "H100", (), "missing GPU type H100")
    outcome = published(Released(Published(place.board, 1, Change.CREATED), (report,)), before=0)
    name = place.board.name
    assert outcome.lines[0] == (f"{name} on {_kinds(place.board)} is published.", Tone.GOOD)
    assert outcome.lines[1] == ("not run on H100: missing GPU type H100", Tone.QUIET)
    again = published(Released(Published(place.board, 3, Change.NEW_VERSION), ()), before=2)
    assert (again.before, again.board) == (2, place.board.id)
    assert again.lines[0][0].endswith("has task version 3 now.")


def _kinds(board: Board) -> str:
    return ", ".join(board.gpus)


def test_a_refusal_is_one_line() -> None:
    assert refused("add", "no").lines == (("no", Tone.BAD),)
