"""A stand-in for what makes a file: it is handed over, once, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runners.harness.sandbox.make import MADE, End
from runners.harness.sandbox.program import own_script

MAKES = """
import os, sys
assert sys.argv[-2] == "-o"
open(sys.argv[-1], "wb").write(b"the program")
"""


def compiled(tmp_path: Path, script: str, most: int = 100) -> tuple[int, bytes]:
    """The exit status, and what was handed over."""
    target = os.memfd_create("target")
    reader, line = os.pipe()
    work = [sys.executable, "-c", script, "-o", MADE]
    run = subprocess.run(
        own_script("sandbox/make.py", str(target), str(most), "made", *work),
        env={"HOME": str(tmp_path), "POPCORN_FD": str(line)},
        pass_fds=(target, line),
        check=False,
        timeout=30,
    )
    content = os.pread(target, 1000, 0)
    for descriptor in (target, reader, line):
        os.close(descriptor)
    return run.returncode, content


def test_the_file_is_handed_over(tmp_path: Path) -> None:
    assert compiled(tmp_path, MAKES) == (End.MADE, b"the program")


@pytest.mark.parametrize(
    ("script", "end"),
    [
        (MAKES + "sys.exit(2)", End.REFUSED),
        (MAKES + "os.abort()", End.REFUSED),
        ("", End.NOTHING),
        ("import os, sys; os.mkfifo(sys.argv[-1])", End.NOTHING),
        ("import os, sys; os.symlink('/etc/passwd', sys.argv[-1])", End.NOTHING),
        (MAKES + "os.truncate(sys.argv[-1], 101)", End.TOO_LARGE),
    ],
)
def test_anything_else_is_not(tmp_path: Path, script: str, end: End) -> None:
    assert compiled(tmp_path, script) == (end, b"")


def test_the_command_gets_no_descriptor_of_ours(tmp_path: Path) -> None:
    script = MAKES + "print([fd for fd in map(int, os.listdir('/proc/self/fd')) if fd > 3])\n"
    script += "assert 'POPCORN_FD' not in os.environ\n"
    script += "for fd in range(3, 100):\n    try: os.write(fd, b'x'); os.abort()\n"
    script += "    except OSError: pass\n"
    assert compiled(tmp_path, script) == (End.MADE, b"the program")
