"""Runs a task's evaluation as the script that it is, in a process that the submission cannot open.

Started by path, with the script and its arguments. What the script starts by `exec`, as the
workers in which a submission runs, can then neither write into this process's descriptors and
memory through /proc nor read the environment with the seed.
"""

import os
import sys

_PR_SET_DUMPABLE = 4


def launch(arguments: list[str]) -> None:
    """Become the script `arguments[0]` with the others as its own."""
    sys.path[0] = str(os.getcwd())  # noqa: PTH109 - nothing of this folder may shadow a module
    import ctypes  # noqa: PLC0415 - only now
    import runpy  # noqa: PLC0415 - only now

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    launch(sys.argv[1:])
