"""Tasks of CUDA C++ sources: our own are well-formed, and one in KernelBot's form runs as it is."""

from pathlib import Path

import pytest

from bot.domain.acceptance import parse_header
from bot.domain.tasks.bundle import solutions
from bot.domain.tasks.competition import parse_competition
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import parse_task
from bot.store.task_folders import read_folder, task_folders
from runners.contract.task import Device, Grader, Mode, TaskDefinition
from runners.contract.verdict import Verdict
from runners.harness.toolchains import nvcc
from tests.doubles.judging import make_judging, serving

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "tasks"
FOLDERS = task_folders(TASKS / "cuda_programs")
NAMES = {"vectoradd_program", "reduction_program", "matmul_program"}
KERNELBOT = ROOT / "tests" / "doubles" / "kernelbot_cuda"


def test_the_competition_lists_every_program() -> None:
    file = TASKS / "cuda_programs.yaml"
    competition = parse_competition(file.read_bytes(), file.name)
    assert {folder.name for folder in FOLDERS} == NAMES
    assert {problem.name for problem in competition.problems} == NAMES
    assert {problem.directory for problem in competition.problems} == {
        f"cuda_programs/{name}" for name in NAMES
    }


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_program_is_complete_and_without_a_remark(folder: Path) -> None:
    bundle = read_folder(folder)
    task, shipped = parse_task(bundle), solutions(bundle)
    assert (task.lang, task.grader, task.device) == (
        "cu", Grader.POPCORN, Device.CUDA,
    )  # fmt: skip
    assert task.is_program
    assert lint(task, shipped) == ()
    right = [each for each in shipped if each.expect is Verdict.PASSED]
    assert len(right) >= 2
    assert {Verdict.WRONG_ANSWER, Verdict.BUILD_FAILED} <= {each.expect for each in shipped}
    sources = [task.files[name] for name in task.templates.values()]
    sources += [each.source for each in right]
    assert {parse_header(source).leaderboard for source in sources} == {folder.name}


def kernelbot() -> TaskDefinition:
    """The task as it is read, on whatever device is here: its program needs none."""
    return parse_task(read_folder(KERNELBOT)).model_copy(update={"device": Device.ANY})


def test_a_task_in_kernelbots_form_is_read_without_an_edit() -> None:
    bundle = read_folder(KERNELBOT)
    task = parse_task(bundle)
    assert (task.grader, task.device) == (Grader.POPCORN, Device.CUDA)
    assert task.submission_file == "submission.cu"
    assert task.config.sources == ("eval.cu", "submission.cu")
    assert task.config.defines == {"FACTOR": 2, "CHECKED": None}
    assert task.templates == {"CUDA": "template.cu"}


@pytest.mark.slow
@pytest.mark.skipif(nvcc.toolchain() is None, reason="no nvcc")
def test_a_task_in_kernelbots_form_runs_as_it_is() -> None:
    task = kernelbot()
    with serving() as harness:
        found = harness.evaluate(make_judging(task.files["template.cu"], Mode.RANKED, task=task))
    assert found.verdict is Verdict.PASSED, found.message + found.log
    times = [case.measurement and case.measurement.time_ns for case in found.cases]
    assert times[:2] == [None, None]
    assert all(time and time > 0 for time in times[2:])
