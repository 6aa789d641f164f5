"""What a sandbox is to see, worked out before anything is mounted."""

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from runners.harness.sandbox import syscalls, view
from tests.architecture.tree import ROOT


def test_folders_inside_others_are_not_shown_twice_and_none_hides_scratch_space() -> None:
    paths = ("/", "/data/python", "/data/python/lib", "/dev", "/usr/local/lib", "/venv")
    assert view._outermost(paths) == ("/data/python", "/venv")


def test_a_device_that_the_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "own_devices", lambda *, gpu: ("/dev/null", "/dev/no-such-device"))
    sources, links = view._sources(gpu=False)
    shown = {source.path: source for source in sources}
    for source in sources:
        os.close(source.descriptor)
    assert "/dev/no-such-device" not in shown
    assert [path for path, source in shown.items() if not source.read_only] == ["/proc"]
    assert shown["/dev/null"].read_only
    assert not links.keys() & shown.keys()


def test_an_interpreter_that_only_its_owner_can_reach_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "interpreter", lambda: ("/usr/lib",))
    assert view.unreadable_by_others() is None
    own = tmp_path / "own"
    (own / "lib").mkdir(parents=True)
    own.chmod(0o700)
    monkeypatch.setattr(view, "interpreter", lambda: ("/usr/lib", str(own / "lib")))
    assert view.unreadable_by_others() == str(own)


def test_a_work_folder_that_was_there_before_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(view, "JOB", str(tmp_path / "job"))
    assert view.enter_job(own_view=True) == str(Path.cwd()) == str(tmp_path / "job")
    with pytest.raises(FileExistsError):
        view.enter_job(own_view=True)


def test_without_a_view_each_candidate_has_a_work_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = Path(view.enter_job(own_view=False))
    (first / "triton.py").write_text("planted")
    second = Path(view.enter_job(own_view=False))
    assert second == Path.cwd() != first
    assert list(second.iterdir()) == []


@pytest.fixture
def hiding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder that is shown, with a hidden one in it that holds a part of the interpreter."""
    (tmp_path / "sys" / "own" / "venv").mkdir(parents=True)
    (tmp_path / "sys" / "lib").mkdir()
    monkeypatch.setattr(view, "SYSTEM", (str(tmp_path / "sys"),))
    monkeypatch.setattr(view, "_requested", [])
    view.hide([str(tmp_path / "sys" / "own"), str(tmp_path / "elsewhere")])
    return tmp_path / "sys"


def test_a_folder_is_hidden_where_a_shown_one_holds_it(hiding: Path) -> None:
    assert view.hidden() == (str(hiding / "own"),)
    assert "/opt" not in view.SYSTEM


def test_rules_that_cannot_take_away_go_round_what_is_hidden(hiding: Path) -> None:
    assert list(view.around_hidden(str(hiding))) == [str(hiding / "lib")]
    assert list(view.around_hidden(str(hiding / "lib"))) == [str(hiding / "lib")]
    assert list(view.around_hidden(str(hiding / "own" / "venv"))) == [str(hiding / "own" / "venv")]


def test_what_the_interpreter_needs_of_a_hidden_folder_is_shown_again(hiding: Path) -> None:
    venv = str(hiding / "own" / "venv")
    assert view._outermost([str(hiding / "lib"), venv]) == (venv,)


def test_the_checkout_is_hidden_and_packages_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(view, "SYSTEM", (str(tmp_path),))
    monkeypatch.setattr(view, "_requested", [str(tmp_path / "podium" / "data")])
    for place, hidden in (("podium", ("podium",)), ("site-packages", ())):
        (tmp_path / place / "runners").mkdir(parents=True)
        monkeypatch.setattr(view, "_RUNNERS", tmp_path / place / "runners")
        assert view.hidden() == tuple(str(tmp_path / each) for each in hidden)


def test_a_work_folder_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: int) -> None:
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(view, "JOB", str(tmp_path))
    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(OSError, match="no room"):
        view.enter_job(own_view=True)


SHARED = """
import ctypes, os
from runners.harness.sandbox import isolate, syscalls
RECURSIVE_AND_SHARED = 0x4000 | 1 << 20
syscalls.unshare(syscalls.CLONE_NEWNS)
assert not ctypes.CDLL(None).mount(None, b"/", None, ctypes.c_ulong(RECURSIVE_AND_SHARED), None)
before = open("/proc/self/mounts").read()
if os.fork() == 0:
    isolate.build_view(1 << 20, gpu=False)
    os._exit(0)
print(os.wait()[1], open("/proc/self/mounts").read() == before)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can share its mounts")
def test_a_machine_that_shares_its_mounts_sees_none_of_a_sandboxs() -> None:
    command = [sys.executable, "-c", SHARED]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    if "PermissionError" in ended.stderr:
        pytest.skip("this machine allows no namespaces")
    assert ended.stdout == "0 True\n", ended.stderr


def test_work_folders_are_removed_from_a_shared_tmp_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    job = Path(tempfile.mkdtemp(prefix=view.SHARED_JOB))
    (job / "answers").write_text("of the rival")
    nested = os.open(job, os.O_RDONLY)
    for _ in range(3_000):  # more than Python can recurse, or a path can name
        os.mkdir("d", dir_fd=nested)
        above, nested = nested, os.open("d", os.O_RDONLY, dir_fd=nested)
        os.close(above)
    os.close(nested)
    (tmp_path / "other").write_text("stays")

    view.remove_jobs()

    assert [each.name for each in tmp_path.iterdir()] == ["other"]


def test_scratch_is_cleared_completely_only_where_no_other_program_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(view, "_own_scratch", set())
    (tmp_path / "left" / "inside").mkdir(parents=True)

    view.clear_scratch()
    assert [each.name for each in tmp_path.iterdir()] == ["left"]

    monkeypatch.setattr(view, "SCRATCH", (str(tmp_path),))
    view.own_scratch()
    view.clear_scratch()
    assert list(tmp_path.iterdir()) == []


def test_what_the_host_shows_in_scratch_is_not_walked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, inner = tmp_path / "a checkout", tmp_path / "home" / "venv"
    for folder in (shown, inner, tmp_path / "home" / "left", tmp_path / "left"):
        folder.mkdir(parents=True)
    monkeypatch.setattr(view, "_own_scratch", {str(tmp_path)})
    monkeypatch.setattr(view, "_mounts", lambda: ("/", str(tmp_path), str(shown), str(inner)))

    view.clear_scratch()

    found = sorted(str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*"))
    assert found == ["a checkout", "home", "home/venv"]


def test_mounts_are_told_with_their_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "tmpfs /folder/a\\040\u00b5 tmpfs rw 0 0\n".encode()
    monkeypatch.setattr(Path, "read_bytes", lambda _: line)
    assert view._mounts() == ("/folder/a \u00b5",)


@pytest.mark.parametrize(("gpu", "read_only"), [(False, "/proc"), (True, "pressure")])
def test_cuda_may_write_to_proc_but_request_no_notices(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, gpu: bool, read_only: str
) -> None:
    (tmp_path / "pressure").mkdir()
    monkeypatch.setattr(view, "_PRESSURE", str(tmp_path / "pressure"))
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(syscalls, "mount", lambda _, path, *__: calls.append(("mount", path)))
    monkeypatch.setattr(syscalls, "bind", lambda _, path: calls.append(("bind", path)))
    attributes = lambda path, *_, **__: calls.append(("read-only", path))  # noqa: E731 - one line
    monkeypatch.setattr(syscalls, "set_mount_attributes", attributes)

    view.mount_proc(innermost=True, gpu=gpu)

    wanted = read_only if read_only.startswith("/") else str(tmp_path / read_only)
    assert [path for step, path in calls if step == "read-only"] == [wanted]
    assert ("bind", wanted) in calls or not gpu
