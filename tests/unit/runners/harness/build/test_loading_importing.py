import sys
from pathlib import Path

import pytest

from runners.harness.build.loading import import_file
from runners.languages import InvalidSubmissionError


@pytest.fixture(autouse=True)
def own_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "a_submission", raising=False)


def test_a_file_is_a_module_that_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "its_neighbour.py").write_text("number = 3\n")
    (tmp_path / "a_submission.py").write_text("from its_neighbour import number\n")
    assert import_file(tmp_path, "a_submission.py").number == 3
    assert sys.modules.pop("a_submission").number == 3


def test_what_it_raises_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "a_submission.py").write_text("raise ValueError('mine')\n")
    with pytest.raises(ValueError, match="mine"):
        import_file(tmp_path, "a_submission.py")
    with pytest.raises(InvalidSubmissionError, match="not a Python file"):
        import_file(tmp_path, "a_submission.txt")
