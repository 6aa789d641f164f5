"""The tasks of device code, as far as a machine without a GPU can tell: all but the launches."""

import subprocess
import sys
from pathlib import Path

import pytest

from bot.domain.acceptance import parse_header
from bot.domain.tasks.bundle import Solution, solutions
from bot.domain.tasks.competition import parse_competition
from bot.domain.tasks.lint import lint
from bot.domain.tasks.task_file import parse_task
from bot.store.task_folders import read_folder, task_folders
from runners.contract.task import Device, Grader, TaskDefinition
from runners.contract.verdict import Verdict
from runners.harness.build.kit import KIT
from runners.harness.judge.launches import launching_of
from runners.harness.toolchains import nvrtc
from runners.harness.verdicts import VerdictError
from runners.languages import BuildFailedError, InvalidSubmissionError, Recipe, cuda

TASKS = Path(__file__).parents[2] / "tasks"
FOLDERS = task_folders(TASKS / "cuda")
SHIPPED = [(folder, each) for folder in FOLDERS for each in solutions(read_folder(folder))]
CHECKED = """
import torch
import reference
for size in {cases}:
    data = reference.generate_input(**size)
    right = reference.ref_kernel(data)
    assert reference.check_implementation(data, right)[0], size
    for wrong in (right * 0, right * 0 + 1, right * float("nan")):
        assert not reference.check_implementation(data, wrong)[0], (size, wrong)
"""


def compiles_headers_of_a_toolkit() -> bool:
    """Whether mma.h finds its second half, which is in no wheel that the tests install."""
    found = nvrtc.find()
    return found is not None and any((each / "crt/mma.h").is_file() for each in found.includes)


def built(folder: Path, task: TaskDefinition, source: str) -> Verdict:
    """What a submission gets before it is launched; PASSED where nothing is wrong so far."""
    try:
        launching = launching_of(task, source)
        assert launching is not None
        (folder / task.submission_file).write_text(source)
        cuda.compile_kernel(folder, Recipe.of(task, launching.signature), KIT, "sm_90a")
    except VerdictError as ruling:
        return ruling.verdict
    except BuildFailedError:
        return Verdict.BUILD_FAILED
    except InvalidSubmissionError:
        return Verdict.INVALID_SUBMISSION
    return Verdict.PASSED


def test_the_competition_lists_every_task() -> None:
    file = TASKS / "cuda.yaml"
    problems = parse_competition(file.read_bytes(), file.name).problems
    assert {TASKS / each.directory for each in problems} == set(FOLDERS)
    assert {each.name for each in problems} == {f"{folder.name}-cu" for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_task_is_complete_and_without_a_remark(folder: Path) -> None:
    bundle = read_folder(folder)
    task, shipped = parse_task(bundle), solutions(bundle)
    assert (task.lang, task.grader, task.device) == ("cu", Grader.NATIVE, Device.CUDA)
    assert task.bytes is not None
    assert lint(task, shipped) == ()
    right = [each.source for each in shipped if each.expect is Verdict.PASSED]
    sources = [*right, *(task.files[name] for name in task.templates.values())]
    assert {parse_header(each).leaderboard for each in sources} == {f"{folder.name}-cu"}


@pytest.mark.parametrize(
    ("folder", "solution"), SHIPPED, ids=[f"{f.name}/{Path(s.name).stem}" for f, s in SHIPPED]
)
def test_a_solution_is_built_as_it_must_be(
    tmp_path: Path, folder: Path, solution: Solution
) -> None:
    if "<mma.h>" in solution.source and not compiles_headers_of_a_toolkit():
        pytest.skip("this machine has no CUDA toolkit")
    refused = {Verdict.BUILD_FAILED, Verdict.INVALID_SUBMISSION}
    wanted = solution.expect if solution.expect in refused else Verdict.PASSED

    assert built(tmp_path, parse_task(read_folder(folder)), solution.source) is wanted


def test_wrong_solutions_cover_every_verdict_that_a_kernel_can_earn_by_itself() -> None:
    assert {each.expect for _, each in SHIPPED} == {
        Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.INVALID_SUBMISSION, Verdict.BUILD_FAILED,
        Verdict.CRASHED, Verdict.TIMED_OUT,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_reference_takes_its_own_answer_and_no_constant(folder: Path, tmp_path: Path) -> None:
    task = parse_task(read_folder(folder))
    for name, text in task.files.items():
        (tmp_path / name).write_text(text)
    cases = [case.args for case in task.tests]
    code = CHECKED.format(cases=cases)

    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
