"""The wrapping by bubblewrap: its trial, with programs that stand for it, and its command line."""

import os
import sys
from pathlib import Path

import pytest

from runners.harness.sandbox import outer, view

ENVIRONMENT = {"LANG": "C.UTF-8"}


@pytest.fixture
def bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is found as bubblewrap; nothing is there yet."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "bwrap"


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command lines that would have replaced this process."""
    found: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, line: found.append(line))
    return found


def write(bwrap: Path, body: str) -> None:
    bwrap.write_text(f"#!/bin/sh\n{body}\n")
    bwrap.chmod(0o755)


def test_without_bubblewrap_it_is_said(bwrap: Path, executed: list[list[str]]) -> None:
    assert outer.bubblewrap_installed() is None
    with pytest.raises(OSError, match="bubblewrap is not installed"):
        outer.enter_bubblewrap([], ENVIRONMENT, 1 << 20, gpu=False)
    assert executed == []


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo 'no user namespaces' >&2; exit 1", "no user namespaces"),
        ("exit 1", "bubblewrap failed"),
        ("exec /bin/sleep 30", "bubblewrap did not answer"),
    ],
)
def test_a_trial_that_fails_is_told_and_nothing_is_replaced(
    bwrap: Path,
    executed: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    words: str,
) -> None:
    monkeypatch.setattr(outer, "_TRIAL_S", 0.5)
    write(bwrap, body)
    with pytest.raises(OSError, match=words):
        outer.enter_bubblewrap([], ENVIRONMENT, 1 << 20, gpu=False)
    assert executed == []


def test_after_a_trial_with_another_bubblewrap_inside_the_program_starts_again(
    bwrap: Path, executed: list[list[str]]
) -> None:
    write(bwrap, f'echo "$@" > {bwrap}.line')
    outer.enter_bubblewrap(["--serve"], ENVIRONMENT, 1 << 20, gpu=False)
    wrapping = outer.bubblewrap_options(ENVIRONMENT, 1 << 20, gpu=False)
    tried = Path(f"{bwrap}.line").read_text().split()
    assert tried[: len(wrapping) - 1] == wrapping[1:]
    assert tried[len(wrapping) - 1 :][:2] == [str(bwrap), "--unshare-all"]
    assert executed == [[*wrapping, sys.executable, "-m", "runners.harness", "--serve"]]


def test_it_gets_a_clean_environment_and_knows_that_it_is_wrapped(
    bwrap: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(bwrap, "")
    line = outer.bubblewrap_options(ENVIRONMENT, 1 << 20, gpu=False)
    set_at = [place for place, word in enumerate(line) if word == "--setenv"]
    environment = {line[place + 1]: line[place + 2] for place in set_at}
    assert "--clearenv" in line
    assert environment == {**ENVIRONMENT, outer.MARKER: outer.BUBBLEWRAP}
    assert not outer.inside_bubblewrap()
    monkeypatch.setenv(outer.MARKER, environment[outer.MARKER])
    assert outer.inside_bubblewrap()


def test_the_system_is_read_only_and_scratch_has_its_size(bwrap: Path) -> None:
    write(bwrap, "")
    line = outer.bubblewrap_options(ENVIRONMENT, 123 << 20, gpu=False)
    joined = " ".join(line)
    assert "--ro-bind /usr /usr" in joined
    assert f"--bind {Path(view.SYSTEM[0])}" not in joined.replace("--ro-bind", "")
    assert all(f"--size {123 << 20} --tmpfs {each}" in joined for each in view.SCRATCH)
    links = [path for path in view.SYSTEM if Path(path).is_symlink()]
    assert all(f"--symlink {Path(path).readlink()} {path}" in joined for path in links)
