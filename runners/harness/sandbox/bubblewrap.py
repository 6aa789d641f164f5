"""Runs the harness under bubblewrap, for a user without root rights."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from runners.harness.sandbox import view

MARKER = "PODIUM_WRAPPED_BY"
"""The environment variable by which the program detects that it runs inside bubblewrap."""
NAME = "bubblewrap"
_TRIAL_S = 5.0


def installed() -> str | None:
    """The path of bubblewrap, or None."""
    return shutil.which("bwrap")


def inside() -> bool:
    """Whether this process was started by `enter`."""
    return os.environ.get(MARKER) == NAME


def enter(argv: Sequence[str], environment: dict[str, str], scratch: int, *, gpu: bool) -> None:
    """Replace this process by the harness inside bubblewrap; OSError if that is impossible.

    A trial first runs one bubblewrap inside another, because a candidate needs nested namespaces.
    """
    wrapped = options(environment, scratch, gpu=gpu)
    nested = [wrapped[0], "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
    try:
        trial = subprocess.run(
            [*wrapped, *nested], capture_output=True, timeout=_TRIAL_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError("bubblewrap did not answer") from error
    if trial.returncode != 0:
        raise OSError(trial.stderr.decode(errors="replace").strip() or "bubblewrap failed")
    os.execv(wrapped[0], [*wrapped, sys.executable, "-m", "runners.harness", *argv])  # noqa: S606 - no shell wanted


def options(environment: dict[str, str], scratch: int, *, gpu: bool) -> list[str]:
    """The command line before the program, with the same visible files as in `view`."""
    found = installed()
    if found is None:
        raise OSError("bubblewrap is not installed")
    command = [found, "--unshare-all", "--die-with-parent", "--clearenv"]
    for name, value in {**environment, MARKER: NAME}.items():
        command += ["--setenv", name, value]
    for path in view.SYSTEM:
        link = Path(path).is_symlink()
        command += ["--symlink", str(Path(path).readlink()), path] if link else []
        command += _bind_options(path) if Path(path).is_dir() and not link else []
    command += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", "/sys", "/sys"]
    for folder in (*view.SCRATCH, *view.EMPTY):
        command += ["--size", str(scratch), "--tmpfs", folder]
    for path in view.interpreter():
        command += _bind_options(path)
    for path in view.hidden():
        command += ["--remount-ro", path]
    for path in view.devices(gpu=gpu):
        command += ["--dev-bind-try", path, path]
    return [*command, "--chdir", str(Path(__file__).resolve().parents[3]), "--"]


def _bind_options(path: str) -> list[str]:
    """Options that bind a folder read-only, with an empty folder over each hidden one inside."""
    inside = [each for each in view.hidden() if each != path and Path(each).is_relative_to(path)]
    return ["--ro-bind", path, path, *(word for each in inside for word in ("--tmpfs", each))]
