"""The workers of an evaluation, forked from a process that is as clean as a new interpreter.

KernelBot's tasks run a submission in a worker that `multiprocessing` spawns: a new interpreter,
which imports torch again. The nursery is forked from the evaluation's process before that has
read its secrets or any file of the task, and inside the same walls. Asked for a worker it forks
one, which gets exactly what `exec` would have left to it, and which becomes a child of the
evaluation. Nobody can look into the nursery. Without it workers are executed as ever.
"""

import ctypes
import fcntl
import json
import multiprocessing.util
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence

from runners.harness.protocol.channel import receive
from runners.harness.sandbox import isolate, syscalls
from runners.harness.supervision import renew

FORK = "--multiprocessing-fork"
"""The last word of the command line of a worker, after the code that it runs."""
_FRAME_MAX = 128 << 10
_FDS_MAX = 128
_ANSWER_S = 30.0
"""How long a worker may take to be forked on a busy machine."""
_STREAMS = (0, 1, 2)

Spawn = Callable[..., int]


def found() -> None:
    """Fork the nursery and have `multiprocessing` ask it; for PID 1, which has one thread."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            isolate.close_others(frozenset({theirs.fileno()}))
            _serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    nursery = ForkServer(ours, multiprocessing.util.spawnv_passfds)
    multiprocessing.util.spawnv_passfds = nursery.spawn  # type: ignore[assignment]


class ForkServer:
    """The evaluation's end."""

    def __init__(self, link: socket.socket, execute: Spawn) -> None:
        self.link = link
        link.settimeout(_ANSWER_S)
        self.execute = execute
        self.before = _inherited()
        self.lock = threading.Lock()

    def spawn(self, path: bytes | str, line: Sequence[bytes | str], kept: Iterable[int]) -> int:
        """Start a Python program as `multiprocessing` wants it, and give its process id.

        A worker comes from the nursery, unless this process has changed what it would inherit.
        """
        kept = sorted(set(kept))
        try:
            if self._may_bear(path, line):
                return self._ask(line, (*_STREAMS, *kept))
        except (OSError, ValueError):
            self.link.close()
        return self.execute(path, line, kept)

    def _may_bear(self, path: bytes | str, line: Sequence[bytes | str]) -> bool:
        """Whether it is a worker of PID 1, and would inherit what the nursery did."""
        worker = os.fsdecode(path) == sys.executable and line[-1] == FORK
        return worker and os.getpid() == 1 and self.before == _inherited()

    def _ask(self, line: Sequence[bytes | str], numbers: tuple[int, ...]) -> int:
        words = [*map(os.fsdecode, line)]
        request = {"line": words, "numbers": numbers, "environment": _environment()}
        frame = json.dumps(request).encode()
        if len(frame) > _FRAME_MAX or len(numbers) > _FDS_MAX:
            raise ValueError("the nursery would not read all of it")
        with self.lock:
            socket.send_fds(self.link, [frame], numbers)
            return int(self.link.recv(64))


def _inherited() -> tuple[object, ...]:
    """What a process hands on to what it executes, besides its environment and its descriptors."""
    os.umask(mask := os.umask(0o077))
    ignored = [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN]
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return (
        os.getcwd(),  # noqa: PTH109 - compared, not used
        mask,
        os.sched_getaffinity(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        sorted(ignored),
        signal.pthread_sigmask(signal.SIG_BLOCK, []),
        [resource.getrlimit(getattr(resource, name)) for name in names],
    )


def _environment() -> list[str]:
    """The environment as the system has it, which is what `exec` takes.

    An evaluation that takes its seed out by `os.unsetenv` still has it in `os.environ`.
    """
    block = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    entries: list[str] = []
    while (entry := block[len(entries)]) is not None:
        entries.append(os.fsdecode(entry))
    return entries


def _serve(link: socket.socket) -> None:
    """Fork a worker for each request, until the evaluation ends."""
    while True:
        frame, fds = receive(link, _FRAME_MAX, _FDS_MAX)
        if not frame:
            return
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _become_worker(frame, fds, writer)
        for fd in (writer, *fds):
            os.close(fd)
        os.waitpid(child, 0)  # from here on the worker is a child of PID 1
        link.sendall(os.read(reader, 64))
        os.close(reader)


def _become_worker(frame: bytes, fds: list[int], writer: int) -> None:
    try:
        isolate.leave_parent(lambda pid: _tell(writer, pid))
        request = json.loads(frame)
        _place(fds, request["numbers"])
        environment = (each.partition("=") for each in request["environment"])
        os.environ.clear()
        os.environ.update({name: value for name, _, value in environment})
        renew.renew(request["line"])
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # as `exec` leaves it
        *_, code, fork = request["line"]
        sys.argv = ["-c", fork]
        renew.interpret(code, {})
    except BaseException:  # noqa: BLE001 - the outermost frame of this process
        traceback.print_exc(file=sys.stderr)
    finally:
        os._exit(1)


def _tell(writer: int, pid: int) -> None:
    os.write(writer, str(pid).encode())


def _place(fds: list[int], numbers: list[int]) -> None:
    """Have each descriptor under its number, to be inherited, and no other one."""
    free = max(*fds, *numbers) + 1
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, free) for fd in fds]
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number)
    isolate.close_others(frozenset(numbers))
