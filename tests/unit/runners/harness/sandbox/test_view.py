"""What a sandbox is to see, worked out before anything is mounted."""

import os
from pathlib import Path

import pytest

from runners.harness.sandbox import view


def test_folders_inside_others_are_not_shown_twice_and_none_hides_scratch_space() -> None:
    paths = ("/", "/data/python", "/data/python/lib", "/dev", "/usr/local/lib", "/venv")
    assert view._outermost(paths) == ("/data/python", "/venv")


def test_the_gpus_device_nodes_are_there_only_for_a_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("nvidia0", "nvidiactl", "nvidia-caps", "sda"):
        (tmp_path / name).touch()
    real = Path
    monkeypatch.setattr(
        view, "Path", lambda path, *more: real(tmp_path if path == "/dev" else path, *more)
    )
    plain, beside_gpu = set(view.devices(gpu=False)), set(view.devices(gpu=True))
    assert "/dev/null" in plain
    assert beside_gpu - plain == {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps"}


def test_a_device_that_the_machine_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "devices", lambda *, gpu: ("/dev/null", "/dev/no-such-device"))
    sources, links = view._sources(gpu=False)
    shown = {source.path: source for source in sources}
    for source in sources:
        os.close(source.descriptor)
    assert "/dev/no-such-device" not in shown
    assert not shown["/dev/null"].read_only
    assert shown["/usr"].read_only
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


def test_the_work_folder_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(view, "JOB", str(tmp_path / "job"))
    for _ in range(2):
        view.enter_job()
        assert Path.cwd() == tmp_path / "job"


def test_a_work_folder_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "JOB", str(tmp_path / "missing" / "job"))
    with pytest.raises(FileNotFoundError):
        view.enter_job()
