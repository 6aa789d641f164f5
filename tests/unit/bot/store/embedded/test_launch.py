"""What becomes the server's program, as a process of its own."""

import os
import subprocess
import sys


def launched(parent: int, *command: str) -> subprocess.CompletedProcess[str]:
    """The end of a program that was started as this user, for the process `parent`."""
    words = [sys.executable, "-m", "bot.store.embedded.launch", "-1", "-1", str(parent), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_a_program_does_not_begin_when_its_parent_is_gone() -> None:
    ended = launched(os.getpid() + 1_000_000, "/bin/echo", "begun")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the parent ended before the program began" in ended.stderr
    assert launched(os.getpid(), "/bin/echo", "begun").stdout == "begun\n"


def test_what_a_program_makes_is_for_its_own_account_alone() -> None:
    assert int(launched(os.getpid(), "/bin/sh", "-c", "umask").stdout, 8) == 0o077
