"""Tests of the files on a command line."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from bot.app.installation import Installation
from bot.cli.context import CommandLine
from bot.cli.files import load_tasks, read_problems, save_files, saved_line
from bot.domain.errors import UserError
from bot.domain.tasks.scaffold import scaffold
from bot.settings import Settings
from runners.contract.files import EvaluationFile

SET = """\
name: Season
problems:
  - {directory: set/double, name: first, gpus: [H100], prize: much}
  - {directory: set/triple, name: second}
"""


@pytest.fixture
def line() -> CommandLine:
    out, err = Console(file=io.StringIO()), Console(file=io.StringIO(), width=200)
    return CommandLine(Installation(Settings()), out, err)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    for name in ("double", "triple"):
        for path, text in scaffold(name).items():
            file = tmp_path / "set" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    (tmp_path / "season.yaml").write_text(SET, encoding="utf-8")
    return tmp_path


def _said(line: CommandLine) -> str:
    assert isinstance(line.err.file, io.StringIO)
    return line.err.file.getvalue()


def test_a_folder_of_tasks_names_each_and_a_task_file_its_own(line: CommandLine, top: Path) -> None:
    every = load_tasks(line, [top / "set", top / "set" / "double" / "task.yml"])
    assert [each.task.name for each in every] == ["double", "triple", "double"]
    assert [each.gpus for each in every] == [()] * 3


def test_a_competition_names_its_tasks_with_what_it_says_of_them(
    line: CommandLine, top: Path
) -> None:
    first, second = load_tasks(line, [top / "season.yaml"])
    assert first.problem is not None
    assert (first.task.name, first.problem.name, first.gpus) == ("double", "first", ("H100",))
    assert (second.task.name, second.gpus) == ("triple", ())
    assert "season.yaml:3: unknown key 'prize'" in _said(line)


def test_only_a_competitions_tasks_may_have_keys_that_we_do_not_know(
    line: CommandLine, top: Path
) -> None:
    file = top / "set" / "double" / "task.yml"
    file.write_text(file.read_text(encoding="utf-8") + "arch: sm_90\n", encoding="utf-8")
    assert len(load_tasks(line, [top / "season.yaml"])) == 2
    assert "unknown key 'arch'" in _said(line)
    with pytest.raises(UserError, match="unknown key 'arch'"):
        load_tasks(line, [top / "set"])


def test_a_competitions_tasks_take_files_from_anywhere_beneath_it(
    line: CommandLine, top: Path
) -> None:
    file = top / "set" / "double" / "task.yml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("source: task.py", "source: ../../task.py"), encoding="utf-8")
    (file.parent / "task.py").rename(top / "task.py")

    assert [each.bundle.root for each in load_tasks(line, [top / "season.yaml"])] == [
        "set/double", "triple",
    ]  # fmt: skip
    assert len(load_tasks(line, [top / "set"], root=top)) == 2
    with pytest.raises(UserError, match=r"double/task\.yml:\d+: '../../task.py' is outside"):
        load_tasks(line, [top / "set"])
    with pytest.raises(UserError, match=r"double/task\.yml:\d+: '../../task.py' is outside"):
        load_tasks(line, [top / "season.yaml"], root=top / "set")


def test_a_set_that_cannot_be_read_is_refused(line: CommandLine, top: Path) -> None:
    (top / "huge.yaml").write_bytes(b"#" * (2 << 20))
    with pytest.raises(UserError, match="at most 1048576 are allowed"):
        load_tasks(line, [top / "huge.yaml"])
    with pytest.raises(UserError, match="there is no such folder or zip"):
        load_tasks(line, [top / "absent.yaml"])


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
        with pytest.raises(UserError, match="no problem such as"):
            read_problems(place, levels)


def test_a_file_that_is_no_text_is_named(checkout: Path) -> None:
    (checkout / "KernelBench" / "level1" / "1_A.py").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match=r"1_A\.py: this is not UTF-8 text"):
        read_problems(checkout, ())


FILE = EvaluationFile.of("case-1.ncu-rep", b"NVR")


def test_files_lie_in_the_folder_under_their_names(tmp_path: Path) -> None:
    saved = save_files([("7-H100-case-1.ncu-rep", FILE)], tmp_path / "new" / "folder")
    assert [path.read_bytes() for path in saved] == [b"NVR"]
    assert saved_line(saved) == f"saved {tmp_path}/new/folder/7-H100-case-1.ncu-rep"
    assert saved_line(save_files([], tmp_path)) == "there are no files to save"


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=f"cannot be saved in {tmp_path}/file"):
        save_files([("a", FILE)], tmp_path / "file")


def test_a_file_that_cannot_be_unpacked_is_named(tmp_path: Path) -> None:
    broken = EvaluationFile.of_zipped("broken", b"nothing that zlib made")
    with pytest.raises(UserError, match="the file broken"):
        save_files([("a", broken)], tmp_path)
