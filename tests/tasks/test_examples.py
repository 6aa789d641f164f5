"""The shipped example tasks are well-formed, whatever machine this is."""

import ast
from pathlib import Path

import pytest

from bot.domain.acceptance import parse_header
from bot.domain.tasks.bundle import Solution, TaskBundle, solutions
from bot.domain.tasks.competition import parse_competition
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import parse_task
from bot.store.task_folders import examples, read_folder, task_folders
from runners.contract.task import Device, Grader, TaskDefinition
from runners.contract.verdict import Verdict

TASKS = Path(__file__).parents[2] / "tasks"
FOLDERS = task_folders(TASKS / "examples")
NAMES = {
    "identity", "vectoradd", "softmax", "matmul", "grayscale", "histogram", "prefixsum", "sort",
}  # fmt: skip


def load(folder: Path) -> tuple[TaskBundle, TaskDefinition, tuple[Solution, ...]]:
    bundle = read_folder(folder)
    return bundle, parse_task(bundle), solutions(bundle)


def test_there_are_the_eight_examples() -> None:
    assert {folder.name for folder in FOLDERS} == NAMES


def test_the_demo_publishes_the_examples_which_need_no_gpu() -> None:
    assert tuple(each.resolve() for each in task_folders(examples())) == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_is_complete_and_without_a_remark(folder: Path) -> None:
    _, task, shipped = load(folder)
    assert task.name == folder.name
    assert task.grader is Grader.NATIVE
    assert task.device is Device.ANY
    assert set(task.shared_files) == {"task.py", "utils.py"}
    assert task.bytes is not None
    assert lint(task, shipped) == ()
    right = [each for each in shipped if each.expect is Verdict.PASSED]
    assert len([each for each in right if not each.needs]) >= 2
    assert any("triton" in each.needs for each in right)
    assert len([each for each in shipped if each.expect is not Verdict.PASSED]) >= 3


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_templates_and_right_solutions_name_their_board(folder: Path) -> None:
    _, task, shipped = load(folder)
    sources = [task.files[name] for name in task.templates.values()]
    sources += [each.source for each in shipped if each.expect is Verdict.PASSED]
    assert {parse_header(source).leaderboard for source in sources} == {folder.name}


def test_every_file_of_the_examples_is_python_but_for_the_broken_ones() -> None:
    broken = []
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            try:
                ast.parse(path.read_text())
            except SyntaxError:
                broken.append(path.stem)
    assert broken == ["syntax_error"]


def test_wrong_solutions_cover_every_verdict_that_a_submission_can_earn_by_itself() -> None:
    shipped = [each for folder in FOLDERS for each in load(folder)[2]]
    assert {each.expect for each in shipped} == {
        Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.INVALID_SUBMISSION, Verdict.BUILD_FAILED,
        Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.MEMORY_EXCEEDED, Verdict.OUTPUT_EXCEEDED,
    }  # fmt: skip


def test_tasks_with_a_hanging_solution_have_short_limits() -> None:
    hanging = [
        (task.test_timeout, task.ranked_timeout)
        for _, task, shipped in map(load, FOLDERS)
        if any(each.expect is Verdict.TIMED_OUT for each in shipped)
    ]
    assert hanging == [(5, 10)] * 2


def test_the_competition_lists_every_example() -> None:
    file = TASKS / "examples.yaml"
    competition = parse_competition(file.read_bytes(), file.name)
    assert {problem.name for problem in competition.problems} == NAMES
    for problem in competition.problems:
        assert (TASKS / problem.directory / "task.yml").is_file()
        assert problem.gpus == ("CPU",)
