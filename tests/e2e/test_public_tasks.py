"""Stand-ins of the 42 public tasks: each is published for real, or refused with what is missing.

This machine has no GPU and none of the libraries aiter, cutlass and helion. On the CPU the sources
say "cpu" where the public ones say "cuda"; a second copy of them imports none of the libraries.
"""

import json
import math
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.public_sets import SETS, PublicTask
from tests.doubles.public_tasks import late, right, write_public_tasks, wrong
from tests.e2e.command import Podium, fresh, refusal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

OWN = "The task's own eval.py grades"
UNKNOWN = f"{OWN}: Podium does not know this program."
ALONE = f"{UNKNOWN} The graders were not compared: no correct solution was run by both."
COMPARED = (
    f"{UNKNOWN} Both agree on all solutions (1 correct, 1 wrong). To have Podium's judge grade "
    "instead, choose the grader native."
)
RANKS = (
    f"{OWN}, because Podium's judge cannot: a task with multi_gpu needs its own evaluation program "
    "and grader 'popcorn'."
)
FUNCTIONS = (
    f"{OWN}, because Podium's judge cannot: reference.py must define check_implementation and "
    "generate_input."
)
CHOSEN = (
    "Podium's judge grades, and eval.py is not run: the task's creator chose so. The graders were "
    "not compared: no correct solution was run by both."
)
NOT_RUN = "Nothing of the task was run: it has no solution and no template."
GRADING = {
    "amd_distributed": RANKS,
    "princeton": f"{FUNCTIONS} {NOT_RUN}",
}
"""Which grader grades each set, and why; most have no solutions to compare the graders with."""
CANNOT_RUN = (
    "{name}: its solutions could not be run: missing {what}; check it on a machine with a runner "
    "that has it, or skip the check at the command line with `podium task publish --unchecked`; "
    "nothing was published"
)
NO_COMPILER = "build failed (OSError: CUDA_HOME environment variable is not set."
LIBRARY = {"nvidia": "library cutlass", "amd_202602": "library aiter"}
TASKS = {task.folder: task for each in SETS.values() for task in each.tasks}


@dataclass(frozen=True, slots=True)
class Site:
    """A Podium with the local runner, and the folders `problems` of each kind."""

    podium: Podium
    cpu: Path
    bare: Path
    cuda: Path

    def publish(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.podium("task", "publish", *arguments)

    def opened(self, *arguments: str | Path) -> dict[str, str]:
        """The grading of each board that this opens, by its name."""
        published = self.publish(*arguments, "--gpu", "CPU", "--no-deadline")
        assert published.returncode == 0, published.stderr
        lines = published.stdout.splitlines()
        told = dict(line.split(": ", 1) for line in lines[::2])
        made = r"{} on CPU: (created, task version 1|new-version, task version \d), no deadline"
        for name, line in zip(told, lines[1::2], strict=True):
            assert re.fullmatch(made.format(name), line)
        return told

    def refused(self, *arguments: str | Path) -> str:
        """Why nothing was published; told after the names of what is run."""
        return refusal(self.publish(*arguments, "--no-deadline"), 2)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with fresh("local") as podium:
        folder = podium.folder
        yield Site(
            podium,
            write_public_tasks(folder / "cpu", "cpu"),
            write_public_tasks(folder / "bare", "cpu", libraries=False),
            write_public_tasks(folder / "cuda"),
        )


def _grading(task: PublicTask) -> str:
    if task.solutions:
        return COMPARED
    said = GRADING.get(task.folder.partition("/")[0], ALONE)
    return said if task.templates or NOT_RUN in said else f"{said} {NOT_RUN}"


def test_there_are_ten_sets_with_42_tasks_and_16_programs(site: Site) -> None:
    found = sorted(path.parent for path in site.cuda.rglob("task.yml"))
    assert found == sorted(site.cuda / folder for folder in TASKS)
    assert (len(SETS), len(found)) == (10, 42)
    assert len({task.evaluation for task in TASKS.values()}) == 16
    assert len(list(site.cuda.glob("*.yaml"))) == 10


@pytest.mark.parametrize("name", [name for name in SETS if name not in {"amd", *LIBRARY}])
def test_a_set_that_this_machine_can_run_is_published_as_a_whole(site: Site, name: str) -> None:
    told = site.opened(site.cpu / SETS[name].file)
    assert told == {task.board: _grading(task) for task in SETS[name].tasks}


@pytest.mark.parametrize("name", LIBRARY)
def test_a_set_that_needs_a_library_is_refused_with_its_name(site: Site, name: str) -> None:
    first, *_ = SETS[name].tasks
    words = CANNOT_RUN.format(name=first.board, what=LIBRARY[name])
    assert site.refused(site.cpu / SETS[name].file, "--gpu", "CPU") == words
    checked = site.podium("task", "check", site.cpu / SETS[name].file, "--gpu", "CPU", "--json")
    told = {each["task"]: each["obstacle"] for each in json.loads(checked.stdout)}
    assert told == {
        task.name: f"missing {LIBRARY[name]}; check it on a machine with a runner that has it"
        for task in SETS[name].tasks
    }


def test_a_template_in_hip_needs_a_compiler_and_the_rest_of_its_set_does_not(site: Site) -> None:
    first, *others = SETS["amd"].tasks
    said = site.refused(site.cpu / "amd.yaml", "--gpu", "CPU")
    assert said.startswith("The task's own eval.py grades: ")
    assert f". {first.board} on CPU: template-hip.py: the template got {NO_COMPILER}" in said
    assert said.endswith("expected passed; nothing was published")
    told = site.opened(*(site.cpu / task.folder for task in others))
    assert told == {task.name: ALONE for task in others}


def test_a_template_in_cutedsl_needs_its_library(site: Site) -> None:
    first, *_ = SETS["nvidia"].tasks
    said = site.refused(site.cpu / first.folder, "--gpu", "CPU", "--grader", "native")
    assert said.startswith("Podium's judge grades, and eval.py is not run: ")
    assert f". {first.name} on CPU: template_cute.py: the template got build failed" in said
    assert "No module named 'cutlass'" in said


def test_podiums_judge_grades_what_it_can(site: Site) -> None:
    folders = ["pmpp_v2/sort_py", "nvidia/nvfp4_group_gemm", "linalg/eigh_py"]
    places = [site.cpu / folder for folder in folders]
    told = site.opened(*places, "--root", site.cpu, "--grader", "native")
    assert set(told.values()) == {CHOSEN}
    assert list(told) == [TASKS[folder].name for folder in folders]


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("amd/mla-decode", "the task's input is or contains a value of type Config, which"),
        (
            "amd_202602/mixed-mla",
            "mixed-mla: its solutions could not be run: missing library aiter",
        ),
        ("amd_distributed/all2all", "a task with multi_gpu needs its own evaluation program"),
        ("princeton/cross_entropy_py", "must define check_implementation and generate_input"),
    ],
)
def test_podiums_judge_says_what_it_cannot_grade(site: Site, folder: str, words: str) -> None:
    chosen = ("--gpu", "CPU", "--grader", "native")
    assert words in site.refused(site.cpu / folder, *chosen)


EVALUATED = {
    "pmpp": "pmpp/vectoradd_py",
    "pmpp_v2": "pmpp_v2/histogram_py",
    "amd": "amd/moe",
    "amd/mla-decode": "amd/mla-decode",
    "bioml/trimul": "bioml/trimul",
    "amd_202602": "amd_202602/mxfp4-mm",
    "amd_202602/moe-mxfp4": "amd_202602/moe-mxfp4",
    "amd_distributed": "amd_distributed/ag-gemm",
    "nvidia": "nvidia/nvfp4_gemv",
    "nvidia/better_bench": "nvidia/nvfp4_dual_gemm",
    "nvidia/grouped": "nvidia/nvfp4_group_gemm",
    "helion": "helion/fp8_quant_py",
    "linalg/qr": "linalg/qr_v2_py",
    "linalg/eigh": "linalg/eigh_py",
    "linalg/cholesky": "linalg/cholesky_py",
    "princeton": "princeton/cross_entropy_py",
}
"""A task for each of the 16 evaluation programs."""
TURNS = ("pmpp", "amd", "helion", "linalg/cholesky")
"""Forms of programs that find a kernel which turns wrong while they time it."""
WORDS = {
    "amd_distributed": "rank 1 - mismatch found\nthe largest difference is ",
    "princeton": "the losses differ",
}


@pytest.fixture(scope="module")
def boards(site: Site) -> Site:
    """A board for each evaluation program, whose sources import no library."""
    places = [site.bare / folder for folder in EVALUATED.values()]
    opened = site.publish(*places, "--root", site.bare, "--gpu", "CPU", "--unchecked")
    assert opened.returncode == 0, opened.stderr
    return site


def _judged(site: Site, task: PublicTask, source: str) -> dict[str, Any]:
    file = site.podium.file("kernel.py", source.replace(task.board, task.name, 1))
    answer = site.podium("submit", file, "--json")
    [job] = json.loads(answer.stdout)["jobs"]
    return dict(job)


@pytest.mark.parametrize("evaluation", EVALUATED)
def test_a_right_kernel_passes_and_gets_the_score_that_its_evaluation_reports(
    boards: Site, evaluation: str
) -> None:
    task = TASKS[EVALUATED[evaluation]]
    assert task.evaluation == evaluation
    job = _judged(boards, task, right(task))
    assert (job["state"], job["verdict"], job["message"]) == ("succeeded", "passed", "")
    tests, timed = task.problem.cases[:2], task.problem.cases[2:]
    assert [each["kind"] for each in job["cases"]] == ["test"] * len(tests) + ["benchmark"] * (
        len(timed) if task.ranking == "geom" else 1
    )
    times = [each["time_ns"] for each in job["cases"] if each["kind"] == "benchmark"]
    if len(timed) > 1:
        [entry] = json.loads(boards.podium("show", task.name, "--json").stdout)[0]["entries"]
        assert entry["time_ns"] == pytest.approx(math.prod(times) ** (1 / len(times)))


@pytest.mark.parametrize("evaluation", TURNS)
def test_a_kernel_that_turns_wrong_while_it_is_timed_is_refused(
    boards: Site, evaluation: str
) -> None:
    task = TASKS[EVALUATED[evaluation]]
    job = _judged(boards, task, late(task))
    assert (job["state"], job["verdict"]) == ("succeeded", "wrong_answer")
    assert job["message"] == "wrong_answer at benchmark 1 of the ranked run"
    assert [each["status"] for each in job["cases"]] == ["passed", "passed", "failed"]


@pytest.mark.parametrize("evaluation", WORDS)
def test_a_wrong_kernel_is_refused_in_the_words_of_its_evaluation(
    boards: Site, evaluation: str
) -> None:
    task = TASKS[EVALUATED[evaluation]]
    job = _judged(boards, task, wrong(task))
    assert (job["state"], job["verdict"]) == ("succeeded", "wrong_answer")
    assert WORDS[evaluation] in job["message"]


def test_a_kernel_that_imports_an_absent_library_is_told_its_name(boards: Site) -> None:
    task = TASKS[EVALUATED["helion"]]
    job = _judged(boards, task, f"#!POPCORN leaderboard {task.board}\nimport helion\n")
    assert (job["verdict"], job["message"]) == (
        "build_failed",
        "ModuleNotFoundError: No module named 'helion'",
    )


def test_on_its_own_gpu_types_every_task_says_what_is_missing(site: Site) -> None:
    files = [site.cuda / each.file for each in SETS.values()]
    checked = site.podium("task", "check", *files, "--json")
    assert checked.returncode == 1
    told = iter(json.loads(checked.stdout))
    for task in TASKS.values():
        for gpu in task.gpus:
            report = next(told)
            name, eight = gpu.replace("MI300", "MI300X").partition("x")[0], task.multi_gpu
            obstacle = f"missing GPU type {name}{', 8 GPUs at the same time' if eight else ''};"
            assert (report["task"], report["ok"]) == (task.name, False)
            assert report["obstacle"].startswith(obstacle), report
    assert next(told, None) is None


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_refused_where_its_gpu_types_are_missing(site: Site, name: str) -> None:
    first, *_ = SETS[name].tasks
    gpu = first.gpus[0].replace("MI300x8", "MI300").replace("MI300", "MI300X")
    what = f"GPU type {gpu}{', 8 GPUs at the same time' if first.multi_gpu else ''}"
    said = site.refused(site.cuda / SETS[name].file)
    assert said == CANNOT_RUN.format(name=first.board, what=what)


def test_a_task_for_cuda_is_no_task_for_the_cpu(site: Site) -> None:
    said = site.refused(site.cuda / "bioml.yaml", "--gpu", "CPU")
    assert said == (
        "leaderboard 'trimul' cannot be for CPU: the task's device is 'cuda'; name other GPU types"
    )


def test_a_set_of_last_year_is_told_how_to_open_again(site: Site) -> None:
    said = refusal(site.publish(site.cuda / "princeton2026.yaml"), 2)
    assert said == (
        "the deadline is in the past: 2026-05-31 23:59 UTC for leaderboard "
        "'princeton_cross_entropy'; choose a later one, or none "
        "(an empty field, or `podium task publish --no-deadline`)"
    )


def test_a_folder_that_takes_files_of_another_set_needs_the_folder_of_all(site: Site) -> None:
    said = site.refused(site.cpu / "linalg" / "qr_py", "--gpu", "CPU")
    assert "'../../pmpp_v2/utils.py' is outside the task" in said
    assert said.endswith("or name the folder of all sets with --root DIR")
    told = site.opened(site.cpu / "linalg" / "qr_py", "--root", site.cpu)
    assert told == {"qr_py": ALONE}
