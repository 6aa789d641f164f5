import pytest

from bot.domain.errors import UserError
from bot.reports.blocks import Attachment, Text
from bot.reports.task import task_report, template_report
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
    assert words == ["Add two vectors.", "2 tests, 1 benchmarks"]
    files = [block for block in report.blocks if isinstance(block, Attachment)]
    assert {file.name: file.data.decode() for file in files} == FILES


@pytest.mark.parametrize(
    ("lang", "name", "text"),
    [
        (None, "vectoradd.py", "#!PODIUM leaderboard vectoradd\ndef custom_kernel(data): ...\n"),
        ("CUDA", "vectoradd.cu", "//!PODIUM leaderboard vectoradd\nint x;\n"),
    ],
)
def test_a_template_names_its_board_in_the_comment_of_its_language(
    lang: str | None, name: str, text: str
) -> None:
    task = make_task(files=FILES, templates={"Python": "template.py", "CUDA": "t.cu"})
    (file,) = template_report(make_board(), task, lang).blocks
    assert file == Attachment(name, text.encode())


def test_a_language_that_the_task_lacks_is_refused_with_those_it_has() -> None:
    task = make_task(files=FILES, templates={"Python": "template.py"})
    with pytest.raises(UserError, match="Python"):
        template_report(make_board(), task, "Pythn")
    with pytest.raises(UserError, match="no template"):
        template_report(make_board(), make_task())
