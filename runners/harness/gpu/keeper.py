"""A process that has the CUDA driver open while nobody else has, so that it stays ready.

A driver that the last process has left starts up for the next one: 0.09 s before each evaluation,
and 0.05 s at the end of each, on an H200. Device files that are open alone do not spare that. Who
has used the driver cannot leave it to those that it forks, so that the server needs another one for
it. That makes no context and does not count as somebody who computes on the GPU.
"""

import os
import select
import signal

from runners.harness.gpu.memory import cuda_driver
from runners.harness.sandbox import isolate, syscalls

END_S = 10.0
"""How long its end is waited for."""


class DriverKeepAlive:
    """That process; it ends with its parent. It was forked before any request was read."""

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
        """Its process id, which is another's once it has ended and was waited for: then nothing."""
        return () if select.select([self.pidfd], [], [], 0)[0] else (self.pid,)

    def close(self) -> None:
        """End it and wait for that, but not for ever: with a dead GPU a process may not end."""
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
