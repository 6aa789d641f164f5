"""Task folders on disk become bundles with exactly the files that belong to the task."""

from pathlib import Path

import pytest

from bot.domain.errors import UserError
from bot.store import task_folders as folders
from bot.store.task_folders import examples, read_folder, task_folders
from tests.architecture.tree import ROOT


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


def test_the_examples_are_named_from_here_where_they_lie_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert examples() == Path("tasks/examples")
    monkeypatch.chdir(tmp_path)
    assert examples() == ROOT / "tasks/examples"
    assert task_folders(examples())


def test_a_folder_without_a_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no task\.yml"):
        read_folder(tmp_path)
    with pytest.raises(UserError, match="no such folder"):
        read_folder(tmp_path / "nowhere")


def test_a_link_is_refused(task: Path) -> None:
    (task / "passwd.py").symlink_to("/etc/passwd")
    with pytest.raises(UserError, match=r"passwd\.py: a link"):
        read_folder(task)


def test_a_linked_file_of_the_set_is_refused_with_its_line(task: Path) -> None:
    (task.parent / "u.py").unlink()
    (task.parent / "u.py").symlink_to("/etc/passwd")
    with pytest.raises(UserError, match=r"add/task\.yml:1: '\.\./u\.py' is a link"):
        read_folder(task)


@pytest.fixture
def crossing(tmp_path: Path) -> Path:
    """A task that takes a file of another set, beside its own."""
    folder = tmp_path / "linear" / "qr"
    folder.mkdir(parents=True)
    (folder / "task.yml").write_text(
        "files:\n  - {name: u.py, source: ../../other/u.py}\n"
        "description: not ../../other/private.txt\ntemplates: {Python: ../t.py}\n"
    )
    (tmp_path / "linear" / "t.py").write_text("t\n")
    (tmp_path / "other").mkdir()
    for name in ("u.py", "private.txt"):
        (tmp_path / "other" / name).write_text("u\n")
    return folder


def test_files_come_from_anywhere_beneath_the_root(crossing: Path, tmp_path: Path) -> None:
    bundle = read_folder(crossing, tmp_path)
    assert (bundle.root, bundle.name) == ("linear/qr", "qr")
    assert set(bundle.files) == {"linear/qr/task.yml", "linear/t.py", "other/u.py"}
    assert bundle.text("../../other/u.py") == "u\n"


@pytest.mark.parametrize("above", [None, "linear", "linear/qr"])
def test_nothing_above_the_root_is_read(crossing: Path, tmp_path: Path, above: str | None) -> None:
    words = r"qr/task\.yml:2: '\.\./\.\./other/u\.py' is outside the task, and outside .*--root DIR"
    with pytest.raises(UserError, match=words):
        read_folder(crossing, None if above is None else tmp_path / above)


def test_a_root_that_is_not_around_the_task_is_refused(crossing: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--root must name a folder that contains"):
        read_folder(crossing, tmp_path / "other")


def test_no_link_leads_out_of_the_root(crossing: Path, tmp_path: Path) -> None:
    (tmp_path / "other").rename(tmp_path / "moved")
    (tmp_path / "other").symlink_to(tmp_path / "moved")
    with pytest.raises(UserError, match="is a link; put the file itself there"):
        read_folder(crossing, tmp_path)


@pytest.mark.parametrize("source", ["/etc/passwd", "../../../../../../etc/passwd", "../.."])
def test_no_path_leads_out_of_the_root(task: Path, source: str) -> None:
    (task / "task.yml").write_text(f"files: [{{name: u.py, source: {source}}}]\n")
    with pytest.raises(UserError, match="is outside the task"):
        read_folder(task, task.parent).text(source)


def test_a_name_that_no_file_can_have_is_none(task: Path) -> None:
    (task / "task.yml").write_text(f"files: [{{name: u.py, source: ../{'x' * 300}}}]\n")
    assert set(read_folder(task).files) == {"add/task.yml", "add/solutions/correct/a.py"}


def test_a_task_file_of_another_form_names_nothing(task: Path) -> None:
    (task / "task.yml").write_text("files: {a: ../u.py}\ntemplates: [../u.py, 3]\n")
    assert set(read_folder(task).files) == {"add/task.yml", "add/solutions/correct/a.py"}


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
        with pytest.raises(UserError, match="are sort"):
            read_folder(wrong)


def test_a_file_is_no_task(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").touch()
    with pytest.raises(UserError, match=r"neither a task's folder nor a file that ends in \.zip"):
        read_folder(tmp_path / "kernel.py")
