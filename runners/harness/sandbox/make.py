"""Runs a command in its sandbox and copies the one file that it creates to a descriptor.

Arguments: the descriptor, its size limit in bytes, the file's name, and the command, in which
`MADE` stands for the file's path in the work folder. As PID 1 of its namespace this script kills
all processes of the command before it reads the file.
"""

import os
import signal
import stat
import sys
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

MADE = "{made}"
"""The word in a command that is replaced by the path of the file that it creates."""
_PR_SET_DUMPABLE = 4
_RESULT_FD = "POPCORN_FD"


class End(IntEnum):
    """The exit statuses of this script."""

    MADE = 0
    REFUSED = 81
    """The command exited with an error."""
    NOTHING = 82
    """The command succeeded, but the file is missing."""
    TOO_LARGE = 83


def main(arguments: list[str]) -> End:
    """Run the command and copy its file to the descriptor; return MADE if the file was copied."""
    import ctypes  # noqa: PLC0415 - only after `sys.path` is safe

    descriptor, most, name, *command = arguments
    target, made = int(descriptor), Path(os.environ["HOME"], name)
    os.set_inheritable(target, False)  # noqa: FBT003 - the library's own signature
    os.close(int(os.environ.pop(_RESULT_FD)))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    words = [str(made) if word == MADE else word for word in command]
    child = os.posix_spawn(words[0], words, os.environ)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _kill_others()
    return End.REFUSED if status else _hand_over(made, target, int(most))


def _kill_others() -> None:
    if os.getpid() != 1:
        return  # without a PID namespace, the judge kills the processes of the command
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _hand_over(made: Path, target: int, most: int) -> End:
    try:
        source = os.open(made, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return End.NOTHING
    status = os.fstat(source)
    if not stat.S_ISREG(status.st_mode):
        return End.NOTHING
    if status.st_size > most:
        return End.TOO_LARGE
    copied = 0
    while copied < status.st_size:
        copied += os.sendfile(target, source, copied, status.st_size - copied)
    return End.MADE


if __name__ == "__main__":
    del sys.path[0]  # no file of this folder may shadow a module
    sys.exit(main(sys.argv[1:]))
