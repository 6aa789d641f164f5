import sys
from pathlib import Path

import pytest
import torch

from runners.contract.io_contract import CALL, KernelCall, KernelKind, TensorArgument
from runners.contract.task import TaskFormat
from runners.harness.build import kit
from runners.languages import InvalidSubmissionError, Recipe
from tests.doubles.judging import make_sort_task

X = TensorArgument(name="x", dtype="float32", shape=(2,))


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "kernel", raising=False)


def recipe(file: str = "kernel.py") -> Recipe:
    task = make_sort_task(format=TaskFormat.IO_CONTRACT, submission_file=file)
    return Recipe.of(task)


def lay(folder: Path, kind: KernelKind) -> None:
    call = KernelCall(kind=kind, args=(X,), function_name="f")
    (folder / CALL).write_text(call.model_dump_json(exclude_none=True))


def test_a_source_is_called_as_the_file_beside_it_says(tmp_path: Path) -> None:
    lay(tmp_path, KernelKind.TORCH)
    (tmp_path / "kernel.py").write_text("def f(x): return x + 1\n")
    kernel = kit.build(tmp_path, recipe()).kernel
    assert kernel({"args": [torch.ones(2)]})[0].tolist() == [2, 2]


def test_a_source_in_cuda_is_not_imported(tmp_path: Path) -> None:
    lay(tmp_path, KernelKind.CUDA)
    (tmp_path / "kernel.cu").write_text("__global__ void f(float* x) {}\n")
    with pytest.raises(InvalidSubmissionError, match="needs a GPU"):
        kit.build(tmp_path, recipe("kernel.cu"))
