"""The demo's check of itself, as a real process; `tests/journeys` has how it goes well."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.doubles.databases import temporary_folder

MATMUL = ROOT / "tasks" / "examples" / "matmul"


def _demo(folder: Path, runner: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    elsewhere = "postgresql://nobody@127.0.0.1:9/must_not_be_touched"
    words = ("demo", "--rounds", "2", *arguments)
    return _podium(folder, *words, PODIUM_RUNNERS=runner, DATABASE_URL=elsewhere)


def _podium(
    folder: Path, *arguments: str | Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bot", *map(str, arguments)],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "PODIUM_RUNNERS": "fake",
        }
        | environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below pytest's own folder: the database's account could not enter that one."""
    with temporary_folder("podium-test-") as made:
        yield made


@pytest.mark.slow
def test_a_judge_that_passes_everything_is_found_out(folder: Path) -> None:
    demo = _demo(folder, "fake", "--tasks", MATMUL)
    assert demo.returncode == 1
    assert "must be crashed, is passed" in demo.stderr
    assert "must not be ranked and is" in demo.stderr
    assert "checks failed" in demo.stdout


def test_a_gpu_type_that_only_this_machine_has_is_accepted(folder: Path) -> None:
    demo = _demo(folder, "fake:CPU=1:RTX5090=1", "--tasks", MATMUL)
    assert "published 1 tasks for CPU, RTX5090" in demo.stderr + demo.stdout
    one = ("task", "publish", MATMUL, "--unchecked", "--name", "one", "--gpu")
    here = _podium(folder, *one, "RTX5090", PODIUM_RUNNERS="fake:RTX5090=1")
    assert here.returncode == 0, here.stderr
    wrong = _podium(folder, *one, "H1000", PODIUM_RUNNERS="fake:RTX5090=1")
    assert "no GPU type is called 'H1000'; did you mean H100?" in wrong.stderr


def test_a_board_of_somebody_else_s_is_left_alone(folder: Path) -> None:
    first = _podium(folder, "task", "publish", MATMUL, "--unchecked", "--name", "demo-matmul")
    assert first.returncode == 0, first.stderr
    demo = _demo(folder, "fake", "--tasks", MATMUL)
    assert demo.returncode == 2
    assert "'demo-matmul' already exists and was not made by the demo" in demo.stderr
    assert _podium(folder, "demo", "--remove").stdout.startswith("no demo found")
    assert "no ranked submissions yet" in _podium(folder, "show", "demo-matmul").stdout


def test_a_folder_without_tasks_is_refused(folder: Path) -> None:
    demo = _demo(folder, "fake", "--tasks", folder / "nowhere")
    assert demo.returncode == 2
    assert "no task found" in demo.stderr
