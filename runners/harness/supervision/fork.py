"""Runs a task's own evaluation, and its workers, in forks that have torch loaded.

The process gets the same sandbox as an executed program. Then it resets itself to the state of a
new Python interpreter, except for the loaded modules, and runs the script. If the script could
notice the difference (`fits` is False), Python is executed instead.

Unlike `exec`, a fork keeps the addresses of loaded modules and the secret of `hash`. Candidates of
the native grader share both with their template too.

KernelBot's tasks run a submission in a worker that `multiprocessing` spawns: a new interpreter,
which imports torch again. The fork server is a clean process instead. It is forked from the
evaluation's process, in the same sandbox, before that process has read its secrets or any file of
the task. On request it forks a worker, which inherits only what `exec` would leave and becomes a
child of the evaluation. No other process can read the fork server's memory. Without a fork server,
workers are executed as usual.
"""

import ctypes
import fcntl
import json
import multiprocessing.util
import os
import re
import resource
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from runners.harness.protocol.channel import receive
from runners.harness.sandbox import isolate, program, syscalls
from runners.harness.sandbox.program import Program, ProgramPipes
from runners.harness.supervision import renew

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_ORDER = TypeAdapter(Program)
_ALTERING = (
    "bytes_warning",
    "debug",
    "dev_mode",
    "ignore_environment",
    "inspect",
    "isolated",
    "no_site",
    "optimize",
    "safe_path",
    "verbose",
    "warn_default_encoding",
)
"""Python flags that change what a script does; the Python of an evaluation has none of them."""
_READ_AT_IMPORT = re.compile(
    r"\b(?:OMP|GOMP|KMP|MKL|MKLDNN|DNNL|ONEDNN|OPENBLAS|BLIS|ATEN|NPY|NUMPY|MALLOC|LD|TRITON)_"
    r"|\bPYTHON[A-Z]|\b(?:PY)?TORCH(?!_CHECK|_CUDA_ARCH|_EXTENSION|_LIBRARY|_NCCL|_SYMM)[A-Z]*_[A-Z]"
)
"""Environment variables that torch or Python reads at its start; a fork would ignore them."""


def pack(order: Program) -> tuple[int, int]:
    """Put the program and its environment into sealed memory files; return their descriptors.

    The template passes them on and never reads them, because the environment contains a seed.
    """
    public = replace(order, environment={})
    environment = json.dumps(dict(order.environment)).encode()
    return sealed_file("order", _ORDER.dump_json(public)), sealed_file("order", environment)


def sealed_file(name: str, content: bytes) -> int:
    """Put content into a sealed memory file; return its descriptor."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return fd


def _read_and_close(fd: int) -> bytes:
    content = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    return content


def enter(order_fd: int, environment_fd: int, pipes: ProgramPipes) -> None:
    """Run a task's evaluation in this fresh fork of the template; never returns."""
    order = _ORDER.validate_json(_read_and_close(order_fd))
    program.become(
        order, pipes, lambda: _run(order, environment_fd, pipes), kept=frozenset({environment_fd})
    )


def fits(files: Mapping[str, str]) -> bool:
    """Whether a script with these files behaves here as in a new interpreter."""
    usual = sys.flags.hash_randomization and not any(getattr(sys.flags, flag) for flag in _ALTERING)
    options = bool(sys.warnoptions or sys._xoptions)
    shadowed = {Path(name).parts[0].split(".")[0] for name in files} & sys.modules.keys()
    settings = any(_READ_AT_IMPORT.search(text) for text in files.values())
    return bool(usual and renew.search_path() and not (options or shadowed or settings))


def _run(order: Program, environment_fd: int, pipes: ProgramPipes) -> None:
    warm = fits(order.files)
    spawns = any("multiprocessing" in text for text in order.files.values())
    if warm and spawns and os.getpid() == 1:
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        start_fork_server()  # before the environment is set, because its seed must stay unknown
    os.environ.update(json.loads(_read_and_close(environment_fd)))
    if not warm:
        program.execute(order.command)
    os.close(pipes.status)  # as `exec` does
    renew.renew(order.command)
    renew.interpret("launch(arguments)", {"launch": _launch, "arguments": [*order.script]})


def _launch(arguments: list[str]) -> None:
    """Run a script as `kernelbot/launch.py` does."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    sys.path[0] = os.getcwd()  # noqa: PTH109 - a string is wanted
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")


FORK = "--multiprocessing-fork"
"""The last argument of a worker's command line, after the code that it runs."""
_FRAME_MAX = 128 << 10
"""The most bytes of a request for a worker."""
_FDS_MAX = 128
"""The most descriptors that a worker may inherit."""
_ANSWER_S = 30.0
"""Seconds for the fork server to fork a worker on a busy machine."""
_STREAMS = (0, 1, 2)

Spawn = Callable[..., int]


def start_fork_server() -> None:
    """Start the fork server and make `multiprocessing` use it; only for PID 1 with one thread."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            isolate.close_others(frozenset({theirs.fileno()}))
            _serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    server = ForkServer(ours, multiprocessing.util.spawnv_passfds)
    multiprocessing.util.spawnv_passfds = server.spawn  # type: ignore[assignment]


class ForkServer:
    """The evaluation's end of the link to its fork server."""

    def __init__(self, link: socket.socket, execute: Spawn) -> None:
        self.link = link
        link.settimeout(_ANSWER_S)
        self.execute = execute
        self.inherited = inherited()
        self.lock = threading.Lock()

    def spawn(self, path: bytes | str, args: Sequence[bytes | str], passed: Iterable[int]) -> int:
        """Start a Python program for `multiprocessing`; return its process id.

        The fork server forks it if `_can_fork`; otherwise it is executed.
        """
        fds = sorted(set(passed))
        try:
            if self._can_fork(path, args):
                return self._request_worker(args, (*_STREAMS, *fds))
        except (OSError, ValueError):
            self.link.close()
        return self.execute(path, args, fds)

    def _can_fork(self, path: bytes | str, args: Sequence[bytes | str]) -> bool:
        """Whether PID 1 starts a worker, and has not changed what the worker would inherit."""
        worker = os.fsdecode(path) == sys.executable and args[-1] == FORK
        return worker and os.getpid() == 1 and self.inherited == inherited()

    def _request_worker(self, args: Sequence[bytes | str], numbers: tuple[int, ...]) -> int:
        line = [*map(os.fsdecode, args)]
        request = {"line": line, "numbers": numbers, "environment": _environment()}
        frame = json.dumps(request).encode()
        if len(frame) > _FRAME_MAX or len(numbers) > _FDS_MAX:
            raise ValueError("the request is too large for the fork server")
        with self.lock:
            socket.send_fds(self.link, [frame], numbers)
            return int(self.link.recv(64))


def inherited() -> tuple[object, ...]:
    """Return what a program inherits through `exec`, except the environment and descriptors."""
    os.umask(mask := os.umask(0o077))
    ignored = [each for each in signal.valid_signals() if signal.getsignal(each) is signal.SIG_IGN]
    names = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return (
        os.getcwd(),  # noqa: PTH109 - compared, not used
        mask,
        os.sched_getaffinity(0),
        os.getpriority(os.PRIO_PROCESS, 0),
        os.sched_getscheduler(0),
        sorted(ignored),
        signal.pthread_sigmask(signal.SIG_BLOCK, []),
        [resource.getrlimit(getattr(resource, name)) for name in names],
    )


def _environment() -> list[str]:
    """The environment of the C library, which `exec` passes on.

    After `os.unsetenv` of a seed, `os.environ` still has it, so `os.environ` is not used.
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
        os.waitpid(child, 0)  # now the worker is a child of PID 1
        link.sendall(os.read(reader, 64))
        os.close(reader)


def _become_worker(frame: bytes, fds: list[int], writer: int) -> None:
    try:
        isolate.leave_parent(lambda pid: os.write(writer, str(pid).encode()))
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


def _place(fds: list[int], numbers: list[int]) -> None:
    """Give each descriptor its number and make it inheritable; close all others."""
    free = max(*fds, *numbers) + 1
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, free) for fd in fds]
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number)
    isolate.close_others(frozenset(numbers))
