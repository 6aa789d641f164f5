"""What an update changes is told before it happens: cases, files, deadline, GPU types."""

import time
from datetime import UTC, datetime

from bot.domain.board import Board
from bot.domain.ids import BoardId, PersonId, TaskVersionId
from bot.reports.blocks import Log, Report, Table, Text
from bot.reports.tasks import about, change_report, task_difference
from runners.contract.task import TaskDefinition, Workload
from tests.doubles.factories import make_task

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
BOARD = Board(BoardId(1), "adding", ("CPU",), NOON, PersonId(1), TaskVersionId(1), NOON)


def report(after: TaskDefinition, **changes: object) -> Report:
    wanted: dict[str, object] = {"gpus": BOARD.gpus, "deadline": BOARD.deadline} | changes
    return change_report(BOARD, make_task(), after, **wanted)  # type: ignore[arg-type]


def rows(found: Report) -> dict[str, tuple[str, str]]:
    (table,) = (block for block in found.blocks if isinstance(block, Table))
    return {what: (now, then) for what, now, then in table.rows}


def test_the_same_task_changes_nothing() -> None:
    (text,) = report(make_task(version_note="only the note")).blocks
    assert isinstance(text, Text)
    assert "Nothing" in text.text


def test_cases_fields_and_files_have_a_row_each_and_a_difference() -> None:
    task = make_task()
    changed = make_task(
        tests=(*task.tests, Workload(args={"size": 9, "seed": 3})),
        ranked_timeout=60,
        description="adds two vectors\nfaster",
        files={"reference.py": "def check_implementation(): pass\n", "extra.py": "x = 1\n"},
    )
    found = report(changed)
    told = rows(found)
    assert told["tests"] == ("2", "3: +1 -0 lines")
    assert told["ranked_timeout"] == ("180", "60")
    assert told["description"] == ("", "+2 -1 lines")
    assert told["reference.py"] == ("1 lines", "+1 -1 lines")
    assert told["extra.py"] == ("none", "+1 -0 lines")
    assert "benchmarks" not in told
    (log,) = (block for block in found.blocks if isinstance(block, Log))
    assert "--- now/reference.py\n+++ then/reference.py\n" in log.text
    assert "-def generate_input(size): ...\n+def check_implementation(): pass\n" in log.text
    assert '+tests: {"args":{"size":9,"seed":3}}\n' in log.text


def test_a_change_of_an_evaluation_that_does_not_run_is_marked() -> None:
    after = make_task(files={**make_task().files, "eval.py": "run()\n"})
    assert rows(report(after))["eval.py (not run)"] == ("none", "+1 -0 lines")


def test_texts_which_differ_in_their_line_ends_alone_have_a_row() -> None:
    before, after = make_task(files={"a.py": "x\n"}), make_task(files={"a.py": "x\r\n"})
    found = change_report(BOARD, before, after, gpus=BOARD.gpus, deadline=BOARD.deadline)
    assert rows(found) == {"a.py": ("1 lines", "+0 -0 lines (line endings)")}


def test_a_removed_file_and_a_long_value_are_told() -> None:
    before = make_task(files={"reference.py": "x", "old.py": "y\n"})
    after = make_task(files={"reference.py": "x"}, libraries=("a" * 70,))
    found = change_report(BOARD, before, after, gpus=BOARD.gpus, deadline=BOARD.deadline)
    told = rows(found)
    assert told["old.py"] == ("1 lines", "removed")
    assert told["libraries"] == ("[]", "see the diff")
    assert "a" * 70 in task_difference(before, after)


def test_deadline_and_gpu_types_are_told() -> None:
    told = rows(report(make_task(), gpus=("CPU", "H100"), deadline=None))
    assert told == {
        "GPU types": ("CPU", "CPU, H100"),
        "deadline": ("2026-05-01 12:00 UTC", "none"),
    }


def test_thousands_of_lines_that_repeat_are_compared_within_a_bound() -> None:
    """Python's own difference needs a time for them that grows with the square, or the cube."""
    first = "".join(f"{number % 101}\n" for number in range(20_000))
    second = "".join(f"{number * 7 % 101}\n" for number in range(20_000))
    before, after = make_task(files={"a.py": first}), make_task(files={"a.py": second})
    began = time.process_time()
    found = change_report(BOARD, before, after, gpus=BOARD.gpus, deadline=BOARD.deadline)
    assert time.process_time() - began < 10
    assert rows(found)["a.py"][0] == "20000 lines"


def test_the_summary_of_a_task_is_its_first_paragraph_on_one_line() -> None:
    text = "# sort\n\nSort `size` **single**\nnumbers.\n\nMore.\n"
    assert about(make_task(description=text)) == "Sort size single numbers."
    assert about(make_task(description="# only a heading")) == ""
    assert len(about(make_task(description="word " * 1_000))) == 160
