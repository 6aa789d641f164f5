"""A checkout of KernelBench becomes boards, by real processes."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.kernels import LINEAR, RENAMED
from tests.e2e.command import BRIEF_S, Podium, fresh, json_refusal, refusal, served

CONSTANT = LINEAR.replace("torch.relu(self.linear(x))", "self.linear(x) * 0")
MEAN = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean() * 0.1

def get_inputs():
    return [torch.rand(4_000_000)]

def get_init_inputs():
    return []
"""
BOARD = "kb1-001-linear-relu"
WITHIN_S = 60


@pytest.fixture
def podium() -> Iterator[Podium]:
    with fresh("local") as podium:
        yield podium


def checkout(podium: Podium, **problems: str) -> Path:
    folder = podium.folder / "checkout"
    for name, source in problems.items():
        file = folder / "KernelBench" / "level1" / f"{name.removeprefix('p')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, encoding="utf-8")
    return folder


def timed(podium: Podium) -> dict[str, Any]:
    """The board's standings as soon as the reference has a time."""
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        found: dict[str, Any] = json.loads(podium("show", BOARD, "--json").stdout)[0]
        if found["reference"]:
            return found
        time.sleep(0.3)
    raise TimeoutError(f"the reference has no time within {WITHIN_S} s")


@pytest.mark.slow
def test_a_problem_becomes_a_board_whose_reference_is_timed(podium: Podium) -> None:
    made = podium("task", "import", "kernelbench", checkout(podium, p1_Linear_Relu=LINEAR))
    assert (
        made.stdout == "tasks/kernelbench: 1 tasks; next: podium task publish tasks/kernelbench\n"
    )
    brief = podium.folder / "tasks" / "kernelbench" / BOARD / "task.yml"
    text = brief.read_text(encoding="utf-8")
    brief.write_text(text.replace("_timeout: 180", f"_timeout: {BRIEF_S}"), encoding="utf-8")
    kernel = podium.file("kernel.py", RENAMED)
    with served(podium):
        opened = podium("task", "publish", "tasks/kernelbench")
        assert opened.returncode == 0, opened.stderr
        ranked = podium("submit", kernel, "--leaderboard", BOARD, "--json")
        assert ranked.returncode == 0, ranked.stdout + ranked.stderr
        found = timed(podium)
    (entry,) = found["entries"]
    assert entry["vs_reference"] == found["reference"]["time_ns"] / entry["time_ns"]


@pytest.mark.slow
def test_a_mean_that_hardly_changes_is_found_out(podium: Podium) -> None:
    podium("task", "import", "kernelbench", checkout(podium, p1_Mean=MEAN))
    checked = podium("task", "check", "tasks/kernelbench")
    assert checked.returncode == 1
    assert "an answer of its first input passes every test" in " ".join(checked.stdout.split())


@pytest.mark.slow
def test_a_problem_with_a_constant_answer_is_found_out(podium: Podium) -> None:
    podium("task", "import", "kernelbench", checkout(podium, p1_Constant=CONSTANT))
    checked = podium("task", "check", "tasks/kernelbench")
    assert checked.returncode == 1
    assert "an answer of zeros passes every test" in " ".join(checked.stdout.split())


def test_what_cannot_be_imported_leaves_nothing(podium: Podium) -> None:
    folder = checkout(podium, p1_Good=LINEAR, p2_Bad="class Model: ...\n")
    assert "level1/2_Bad.py" in refusal(podium("task", "import", "kernelbench", folder), 2)
    assert "no problem" in refusal(podium("task", "import", "kernelbench", podium.folder / "x"), 2)
    assert "unknown problem set" in refusal(podium("task", "import", "otherbench", folder), 2)
    odd = podium("task", "import", "kernelbench", folder, "--precision", "fp8", "--json")
    assert json_refusal(odd, 2)[0] == "usage"
    assert not (podium.folder / "tasks").exists()


def test_a_set_is_not_written_over(podium: Podium) -> None:
    folder = checkout(podium, p1_Good=LINEAR)
    first = podium("task", "import", "kernelbench", folder, "--json")
    assert json.loads(first.stdout) == {"folder": "tasks/kernelbench", "tasks": ["kb1-001-good"]}
    again = refusal(podium("task", "import", "kernelbench", folder), 2)
    assert "tasks/kernelbench already exists" in again
    other = podium("task", "import", "kernelbench", folder, "--into", "other", "--level", "1")
    assert other.returncode == 0, other.stderr
