import sys
from pathlib import Path

import pytest

from runners.contract.task import TaskFormat
from runners.harness.build.kit import KIT
from runners.languages import InvalidSubmissionError, Kernel, Recipe, python


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "submission", raising=False)


def recipe(
    submission_file: str = "submission.py", task_format: TaskFormat = TaskFormat.KERNEL
) -> Recipe:
    return Recipe(language="py", submission_file=submission_file, format=task_format)


def build(folder: Path, source: str) -> Kernel:
    (folder / "submission.py").write_text(source)
    return python.build(folder, recipe(), KIT).kernel


@pytest.mark.parametrize(
    "source",
    [
        "def custom_kernel(data): return data + 1",
        "custom_kernel = lambda data: data + 1",
        "def custom_kernel(data, scale=1): return data + scale",
        "def custom_kernel(*args): return args[0] + 1",
        "class K:\n    def __call__(self, data): return data + 1\ncustom_kernel = K()",
        "custom_kernel = (1).__add__",
    ],
)
def test_anything_that_takes_the_input_is_a_kernel(tmp_path: Path, source: str) -> None:
    assert build(tmp_path, source)(1) == 2


def test_a_callable_without_a_signature_is_believed(tmp_path: Path) -> None:
    assert build(tmp_path, "custom_kernel = type")(1) is int


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("x = 1", "there is no `custom_kernel`"),
        ("custom_kernel = 5", "is not a function"),
        ("def custom_kernel(): ...", "cannot be called with one argument"),
        ("def custom_kernel(a, b): ...", r"`custom_kernel\(a, b\)`"),
        ("def custom_kernel(*, data): ...", "cannot be called"),
    ],
)
def test_an_unusable_kernel_is_invalid(tmp_path: Path, source: str, words: str) -> None:
    with pytest.raises(InvalidSubmissionError, match=words):
        build(tmp_path, source)


def test_a_failing_import_passes_through(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        build(tmp_path, "1 / 0")


def test_a_file_of_another_language_is_invalid(tmp_path: Path) -> None:
    with pytest.raises(InvalidSubmissionError, match="not a Python file"):
        python.build(tmp_path, recipe("submission.cu"), KIT)


def test_a_submission_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_submission.py").write_text("ANSWER = 5\n")

    kernel = build(
        tmp_path, "from neighbour_of_submission import ANSWER\ndef custom_kernel(_): return ANSWER"
    )

    assert kernel(0) == 5


def test_the_interpreter_is_the_toolchain() -> None:
    assert str(python.toolchain(KIT)).startswith("CPython 3.")


def test_a_submission_is_found_by_its_modules_name(tmp_path: Path) -> None:
    kernel = build(
        tmp_path,
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Config:\n    size: int = 3\n"
        "def custom_kernel(_): return Config().size",
    )

    assert kernel(0) == 3


def test_a_model_is_a_kernel_where_the_task_wants_one(tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text("class ModelNew: ...\ndef custom_kernel(data): ...\n")
    built = python.build(tmp_path, recipe(task_format=TaskFormat.KERNELBENCH), KIT)
    assert built.compiled is None
    assert type(built.kernel).__name__ == "ModelKernel"


def test_a_kernel_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "submission.py").write_text("def custom_kernel(data): ...\n")
    with pytest.raises(InvalidSubmissionError, match="there is no `ModelNew`"):
        python.build(tmp_path, recipe(task_format=TaskFormat.KERNELBENCH), KIT)
