import pytest

from bot.reports.blocks import Attachment, Text
from bot.reports.tasks import task_report, template_report
from runners.contract.task import Grader
from tests.doubles.factories import make_board, make_task

FILES = {
    "reference.py": "x = 1\n",
    "template.py": "def custom_kernel(data): ...\n",
    "t.cu": "int x;\n",
}


def test_a_task_is_told_with_every_file_and_how_much_there_is_to_pass() -> None:
    report = task_report(make_board(), make_task(files=FILES))
    assert report.title == "Task of vectoradd"
    words = [block.text for block in report.blocks if isinstance(block, Text)]
    assert words == ["Add two vectors.", "2 tests, 1 benchmark"]
    files = [block for block in report.blocks if isinstance(block, Attachment)]
    assert {file.name: file.data.decode() for file in files} == FILES


def test_an_evaluation_that_does_not_run_is_marked() -> None:
    task = make_task(files=FILES | {"eval.py": "run()\n"})
    words = [each.text for each in task_report(make_board(), task).blocks if isinstance(each, Text)]
    assert words[-1] == "eval.py is not run: Podium's judge grades this task"
    own = task_report(make_board(), task.model_copy(update={"grader": Grader.POPCORN}))
    assert not any("not run" in each.text for each in own.blocks if isinstance(each, Text))


@pytest.mark.parametrize(
    ("lang", "told", "name", "text"),
    [
        (None, "Python", "vectoradd.py", "#!PODIUM leaderboard vectoradd\nx = 2\n"),
        ("CUDA", "CUDA", "vectoradd.cu", "//!PODIUM leaderboard vectoradd\nint x;\n"),
    ],
)
def test_a_template_names_its_board_in_the_comment_of_its_language(
    lang: str | None, told: str, name: str, text: str
) -> None:
    files = FILES | {"template.py": "#!PODIUM leaderboard of_the_task\nx = 2\n"}
    task = make_task(files=files, templates={"Python": "template.py", "CUDA": "t.cu"})
    report = template_report(make_board(), task, lang)
    assert report.title == f"Template of vectoradd ({told})"
    assert report.blocks == (Attachment(name, text.encode()),)
