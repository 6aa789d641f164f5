"""A script that is launched finds itself as if Python had run it, save that nobody can open it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.harness.kernelbot import launch
from runners.harness.sandbox.program import own_script

SCRIPT = """
import json, os, sys, multiprocessing

def double(number):
    return 2 * number

if __name__ == "__main__":
    import ctypes
    dumpable = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        doubled = pool.apply(double, (21,))
    print(json.dumps([sys.argv, sys.path[0] == os.getcwd(), dumpable, doubled]))
"""


def test_a_script_has_its_arguments_its_folder_and_workers_that_know_it(tmp_path: Path) -> None:
    (tmp_path / "eval.py").write_text(SCRIPT)
    command = own_script("kernelbot/launch.py", "eval.py", "test", "cases")
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True, timeout=60)
    assert run.stdout == b'[["eval.py", "test", "cases"], true, 0, 42]\n'


def test_its_exit_status_is_the_scripts(tmp_path: Path) -> None:
    (tmp_path / "eval.py").write_text("raise SystemExit(112)")
    command = own_script("kernelbot/launch.py", "eval.py")
    assert subprocess.run(command, cwd=tmp_path, check=False, timeout=60).returncode == 112


def test_nothing_beside_the_launcher_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eval.py").write_text("import sys\nsys.seen = sys.path[0], sys.argv\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["beside", *sys.path[1:]])
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "seen", None, raising=False)
    child = os.fork()
    if child == 0:  # for it gives up that anybody may look into it
        launch.launch(["eval.py", "x"])
        os._exit(0 if sys.seen == (str(tmp_path), ["eval.py", "x"]) else 1)  # type: ignore[attr-defined]
    assert os.waitpid(child, 0)[1] == 0
