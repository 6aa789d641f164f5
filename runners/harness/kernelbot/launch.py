"""Runs a task's evaluation script in a process that the submission cannot access.

Arguments: the script and its arguments. This process is not dumpable. Programs that the script
executes, such as the workers that run a submission, therefore cannot use /proc to write to its
descriptors and memory, or to read its environment with the seed.
"""

import os
import sys

_PR_SET_DUMPABLE = 4


def launch(arguments: list[str]) -> None:
    """Run the script `arguments[0]` in this process with the other arguments."""
    sys.path[0] = str(os.getcwd())  # noqa: PTH109 - nothing of this folder may shadow a module
    import ctypes  # noqa: PLC0415 - only after `sys.path` is safe
    import runpy  # noqa: PLC0415 - as above

    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    launch(sys.argv[1:])
