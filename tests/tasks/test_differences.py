"""Every checker that comes with Podium names the first wrong element: index, got, expected."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
import torch

from bot.domain.tasks.scaffold import scaffold
from runners.harness.io_contract.reference import mismatch

ROOT = Path(__file__).parents[2]
EXPECTED = torch.tensor([1.0, 2.0, 3.0])
GOT = torch.tensor([1.0, 2.5, 9.0])
WORDS = "2 of 3 elements differ; the first at [1]: got 2.5, expected 2.0"


def module(path: Path) -> ModuleType:
    """Import a file of a task as the judge does."""
    spec = importlib.util.spec_from_file_location(f"a_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def examples() -> str:
    found: str = module(ROOT / "tasks/examples/utils.py").difference(GOT, EXPECTED)
    return found


def cuda() -> str:
    _, text = module(ROOT / "tasks/cuda/utils.py").compared(GOT, EXPECTED.double(), 0.0, 0.0)
    return str(text)


def contract() -> str:
    return mismatch([EXPECTED], [GOT], 0.0, 0.0) or ""


@pytest.mark.parametrize("checked", [examples, cuda, contract])
def test_a_checker_names_index_got_and_expected(checked: Callable[[], str]) -> None:
    assert checked().startswith(WORDS)


def test_the_checker_of_a_new_task_names_index_got_and_expected(tmp_path: Path) -> None:
    for name in ("task.py", "reference.py"):
        (tmp_path / name).write_text(scaffold("doubling")[name], encoding="utf-8")
    with patch.dict(sys.modules, {"task": module(tmp_path / "task.py")}):
        check = module(tmp_path / "reference.py").check_implementation
    data = EXPECTED / 2
    assert check(data, EXPECTED) == (True, "")
    assert check(data, GOT) == (False, WORDS)
    nan = torch.full_like(GOT, float("nan"))
    assert "3 of 3 elements differ; the first at [0]: got nan" in check(data, nan)[1]
