"""Files of an evaluation are written where a person wants them, or it is said why not."""

from pathlib import Path

import pytest

from bot.cli.saving import save, told
from bot.domain.errors import UserError
from runners.contract.files import EvaluationFile

FILE = EvaluationFile.of("case-1.ncu-rep", b"NVR")


def test_files_lie_in_the_folder_under_their_names(tmp_path: Path) -> None:
    saved = save([("7-H100-case-1.ncu-rep", FILE)], tmp_path / "new" / "folder")
    assert [path.read_bytes() for path in saved] == [b"NVR"]
    assert told(saved) == f"saved {tmp_path}/new/folder/7-H100-case-1.ncu-rep"
    assert told(save([], tmp_path)) == "there are no files to save"


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=f"cannot be saved in {tmp_path}/file"):
        save([("a", FILE)], tmp_path / "file")


def test_a_file_that_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    broken = EvaluationFile.of_zipped("broken", b"nothing that zlib made")
    with pytest.raises(UserError, match="the file broken"):
        save([("a", broken)], tmp_path)
