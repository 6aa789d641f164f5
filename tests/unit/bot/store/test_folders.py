"""Task folders on disk become bundles with exactly the files that belong to the task."""

from pathlib import Path

import pytest

from bot.domain.errors import UserError
from bot.store import folders
from bot.store.folders import read_folder, task_folders


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "set" / "add"
    (folder / "solutions" / "correct").mkdir(parents=True)
    (folder / "task.yml").write_text("files: [{name: u.py, source: ../u.py}]\n")
    (folder / "solutions" / "correct" / "a.py").write_text("a\n")
    (tmp_path / "set" / "u.py").write_text("u\n")
    (tmp_path / "set" / "private.txt").write_text("p\n")
    return folder


def test_a_bundle_has_the_folder_and_what_it_names_of_its_set(task: Path) -> None:
    (task / "__pycache__").mkdir()
    (task / "__pycache__" / "a.pyc").write_text("x")
    (task / ".git").write_text("x")
    bundle = read_folder(task)
    assert bundle.root == "add"
    assert set(bundle.files) == {"add/task.yml", "add/solutions/correct/a.py", "u.py"}


def test_a_folder_without_a_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no task\.yml"):
        read_folder(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        read_folder(tmp_path / "nowhere")


def test_a_link_is_refused(task: Path) -> None:
    (task / "passwd.py").symlink_to("/etc/passwd")
    with pytest.raises(UserError, match=r"passwd\.py: a link"):
        read_folder(task)


def test_a_linked_file_of_the_set_is_left_out(task: Path) -> None:
    (task.parent / "u.py").unlink()
    (task.parent / "u.py").symlink_to("/etc/passwd")
    assert "u.py" not in read_folder(task).files


def test_too_many_bytes_or_files_are_refused(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(folders, "MAX_UNPACKED", 10)
        with pytest.raises(UserError, match="more than 10 bytes"):
            read_folder(task)
    monkeypatch.setattr(folders, "MAX_ENTRIES", 1)
    with pytest.raises(UserError, match="more than 1 files"):
        read_folder(task)


def test_tasks_are_found_at_and_below_a_folder(task: Path) -> None:
    assert task_folders(task) == (task,)
    assert task_folders(task.parent) == (task,)
    assert task_folders(task.parent.parent) == (task,)


def test_a_slip_of_the_pen_is_answered_with_the_tasks_that_lie_near(tmp_path: Path) -> None:
    (tmp_path / "sort").mkdir()
    (tmp_path / "sort" / "task.yml").touch()
    for wrong in (tmp_path, tmp_path / "sotr"):
        with pytest.raises(UserError, match="lie the tasks sort"):
            read_folder(wrong)


def test_a_file_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").touch()
    with pytest.raises(UserError, match=r"neither a task's folder nor a file that ends in \.zip"):
        read_folder(tmp_path / "kernel.py")
