"""A process that keeps the CUDA driver initialized between evaluations.

Without it, the driver shuts down when the last process leaves it and starts again for the next one.
On an H200 that costs 0.09 s before each evaluation and 0.05 s after it. Open device files alone do
not prevent it. The server cannot do this itself, because a process that has used the driver cannot
fork others that do. This process creates no context and does not count as computing on the GPU.
"""

import os
import select
import signal

from runners.harness.gpu.memory import cuda_driver
from runners.harness.sandbox import isolate, syscalls

END_S = 10.0
"""How long to wait for its exit, in seconds."""


class DriverKeepAlive:
    """The process, which is forked before any request is read and ends with its parent."""

    def __init__(self) -> None:
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _keep(parent)
            finally:
                os._exit(0)
        self.pidfd = os.pidfd_open(self.pid)

    @property
    def living(self) -> tuple[int, ...]:
        """Its process id; () once it has exited, because the id may then be reused."""
        return () if select.select([self.pidfd], [], [], 0)[0] else (self.pid,)

    def close(self) -> None:
        """Kill it and wait at most `END_S`, because with a broken GPU a process may never exit."""
        if self.living:
            os.kill(self.pid, signal.SIGKILL)
            if select.select([self.pidfd], [], [], END_S)[0]:
                os.waitpid(self.pid, 0)
        os.close(self.pidfd)


def _keep(parent: int) -> None:
    isolate.let_go_of_streams()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent and cuda_driver().cuInit(0) == 0:
        while True:
            signal.pause()
