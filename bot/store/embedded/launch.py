"""Becomes a Postgres program: drops root, asks to be stopped with the parent, and executes it.

Run as `python -I -S launch.py UID GID PARENT PROGRAM ARGUMENTS...`; UID -1 keeps the user and
PARENT 0 lets the program outlive its parent.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Change this process as requested and replace it by the program."""
    uid, gid, parent = (int(word) for word in arguments[:3])
    if uid >= 0:
        os.setgroups([gid])
        os.setgid(gid)
        os.setuid(uid)
    if parent and sys.platform == "linux":
        # After setuid, because changed credentials reset this setting in the kernel.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:
            sys.exit("the parent ended before the program began")
    os.umask(0o077)
    os.chdir("/")
    os.execv(arguments[3], arguments[3:])  # noqa: S606 - the program is ours, named by its path


if __name__ == "__main__":
    main(sys.argv[1:])
