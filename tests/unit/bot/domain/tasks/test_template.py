import pytest

from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.tasks.template import STUB_VERDICTS, Template, shown_files, template_of, templates
from runners.contract.task import TaskDefinition
from runners.contract.verdict import Verdict
from tests.doubles.factories import make_task

PASSED = frozenset({Verdict.PASSED})


def task_with(text: str, file: str = "template.py") -> TaskDefinition:
    files = {"reference.py": "x = 1\n", file: text}
    return make_task(files=files, templates={"Python": file})


@pytest.mark.parametrize(
    "own",
    [
        "",
        "#!PODIUM leaderboard vectoradd\n",
        "#!POPCORN leaderboard vectoradd\n#!POPCORN gpus A100 H100\n",
        "# a comment\n\n//!PODIUM GPU L4\n#!PODIUM leaderboard\n",
        "\ufeff#!PODIUM leaderboard vectoradd\r\n",
    ],
)
def test_a_template_has_one_heading_which_names_the_board_whatever_its_own_said(own: str) -> None:
    served = template_of(task_with(f"{own}x = 1\n"), "another.board")
    assert served.name == "another.board.py"
    file = acceptance.read_file(served.name, served.content)
    assert (file.header.leaderboard, file.header.gpus) == ("another.board", ())
    assert file.source.count("!P") == 1
    assert file.source.startswith("#!PODIUM leaderboard another.board\n")
    assert file.source.endswith("x = 1\n")


def test_what_a_heading_says_of_the_launch_stays() -> None:
    source = "//!PODIUM leaderboard a\n//!PODIUM block 64\n__global__ void f() {}\n"
    served = template_of(task_with(source, "t.cu"), "b")
    assert served.name == "b.cu"
    assert served.text == source.replace("board a", "board b")


def test_the_files_of_a_task_show_its_templates_as_the_board_hands_them_out() -> None:
    task = task_with("#!PODIUM leaderboard vectoradd\nx = 2\n")
    assert shown_files(task, "b") == {
        "reference.py": "x = 1\n",
        "template.py": "#!PODIUM leaderboard b\nx = 2\n",
    }


def test_one_file_may_be_the_template_of_two_languages() -> None:
    task = make_task(files={"t.py": "x = 1\n"}, templates={"Python": "t.py", "Triton": "t.py"})
    assert list(templates(task, "b")) == ["t.py"]
    assert template_of(task, "b", "Triton") == template_of(task, "b")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def custom_kernel(data):\n    return data\n", PASSED),
        ("#!PODIUM expect crashed\nx = 1\n", {Verdict.CRASHED}),
        ("def custom_kernel(data):\n    pass\n", STUB_VERDICTS),
        ("def custom_kernel(data: a) -> b:\n    'Words.'\n    ...\n", STUB_VERDICTS),
        ("def custom_kernel(data):\n    raise NotImplementedError\n", STUB_VERDICTS),
        ("def custom_kernel(data):\n    raise NotImplementedError('write')\n", STUB_VERDICTS),
        ("class ModelNew:\n    def forward(self, x): ...\n", STUB_VERDICTS),
        ("def custom_kernel(data):\n    raise ValueError\n", PASSED),
        ("def custom_kernel(data):\n    return None\n", PASSED),
        ("def other(): ...\ndef custom_kernel(data):\n    return data\n", PASSED),
        ("def custom_kernel(data: ...\n", PASSED),
        ("(" * 3000, PASSED),
        (f"# {'x' * 5000}\ndef custom_kernel(data):\n    pass\n", PASSED),
    ],
)
def test_a_template_must_pass_unless_it_is_declared_a_stub(
    source: str, expected: frozenset[Verdict]
) -> None:
    assert Template("a.py", source).expected == expected


def test_device_code_declares_a_stub_in_its_heading() -> None:
    served = template_of(task_with("//!PODIUM expect wrong_answer\nint x;\n", "t.cu"), "b")
    assert served.expected == {Verdict.WRONG_ANSWER}
    assert served.marker == "//!PODIUM"
    assert Template("b.cu", "//!PODIUM leaderboard b\nvoid custom_kernel() {}\n").expected == PASSED


def test_a_heading_that_no_board_takes_is_refused() -> None:
    with pytest.raises(UserError, match="line 2 of the header: unknown key 'blok'"):
        _ = template_of(task_with("#!PODIUM blok 3\nx = 1\n"), "b").expected


def test_a_language_that_the_task_lacks_is_refused_with_those_it_has() -> None:
    with pytest.raises(UserError, match="Python"):
        template_of(task_with("x = 1\n"), "b", "Pythn")
    with pytest.raises(UserError, match="no template"):
        template_of(make_task(), "b")
