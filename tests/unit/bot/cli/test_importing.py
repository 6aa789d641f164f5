from pathlib import Path

import pytest

from bot.cli.importing import read_problems
from bot.domain.errors import UserError


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for path in ("level1/1_A.py", "level1/2_B.py", "level2/1_C.py", "level1/notes.txt", "x.py"):
        file = tmp_path / "repo" / "KernelBench" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    return tmp_path / "repo"


@pytest.mark.parametrize("below", ["", "KernelBench"])
def test_every_level_of_a_checkout_is_found(checkout: Path, below: str) -> None:
    found = read_problems(checkout / below, ())
    assert found == {path: path for path in ("level1/1_A.py", "level1/2_B.py", "level2/1_C.py")}


def test_a_level_can_be_chosen_by_its_number_or_its_folder(checkout: Path) -> None:
    chosen = read_problems(checkout, [2])
    assert list(chosen) == ["level2/1_C.py"]
    assert read_problems(checkout / "KernelBench" / "level2", ()) == chosen


def test_a_folder_without_problems_is_refused(checkout: Path, tmp_path: Path) -> None:
    for place, levels in ((checkout, [3]), (tmp_path / "nowhere", ())):
        with pytest.raises(UserError, match="there is no problem"):
            read_problems(place, levels)


def test_a_file_that_is_no_text_is_named(checkout: Path) -> None:
    (checkout / "KernelBench" / "level1" / "1_A.py").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"1_A\.py: this is not UTF-8 text"):
        read_problems(checkout, ())
