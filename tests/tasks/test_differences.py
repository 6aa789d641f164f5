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


INFINITE = torch.tensor([float("inf"), -float("inf")], dtype=torch.float64)


@pytest.mark.parametrize("got", [[0.0, 0.0], [1e30, -1e30], [-float("inf"), float("inf")]])
def test_only_infinity_is_right_where_infinity_is_expected(got: list[float]) -> None:
    numbers = torch.tensor(got, dtype=torch.float64)
    difference = module(ROOT / "tasks/examples/utils.py").difference
    compared = module(ROOT / "tasks/cuda/utils.py").compared

    assert "2 of 2 elements differ" in difference(numbers, INFINITE, 1e-3, 1.0)
    assert "2 of 2 elements differ" in compared(numbers, INFINITE, 1e-3, 1.0)[1]
    near = torch.tensor([float("inf"), 1.5], dtype=torch.float64)
    wanted = torch.tensor([float("inf"), 1.0], dtype=torch.float64)
    assert difference(near, wanted, 0.0, 0.5) == ""
    assert compared(near, wanted, 0.0, 0.5) == (True, "")


def test_imaginary_parts_are_compared() -> None:
    difference = module(ROOT / "tasks/examples/utils.py").difference
    compared = module(ROOT / "tasks/cuda/utils.py").compared
    wanted = torch.tensor([1 + 2j, 3 - 4j])

    assert "2 of 2 elements differ" in difference(wanted.real.to(wanted.dtype), wanted, 1e-4)
    exact = wanted.to(torch.complex128)
    assert "2 of 2 elements differ" in compared(exact.real, exact, 1e-4, 0.0)[1]
    assert difference(wanted * (1 + 1e-6), wanted, 1e-4) == ""


def test_integers_that_are_equal_only_in_double_precision_differ() -> None:
    difference = module(ROOT / "tasks/examples/utils.py").difference
    wanted = torch.tensor([1 << 60, 5])

    assert "1 of 2 elements differ" in difference(wanted + torch.tensor([1, 0]), wanted)


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
