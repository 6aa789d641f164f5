"""The warm template: a clean process with torch imported that forks candidates on request.

It is forked before its judge has read any request, so it holds no input, seed or reference.
"""

import functools
import json
import os
import runpy
import select
import socket
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress

import torch

from runners.harness.protocol.channel import (
    FDS,
    FORKED,
    FRAME_MAX,
    CandidateSpec,
    SpareSpec,
    encode,
    pair,
    receive,
)
from runners.harness.sandbox import isolate
from runners.harness.sandbox.locks import LockServer
from runners.harness.sandbox.program import Program, ProgramPipes
from runners.harness.supervision import fork
from runners.harness.supervision.spares import Spares

_EVALUATION = b"evaluation"
"""The request for a task's own evaluation; a memory file sent with it has the program."""


def serve(link: socket.socket) -> None:
    """Fork a candidate for each request until the judge closes the link; several may start at once.

    Each fork is an intermediate process, which exits as soon as its child runs. Until this process
    has waited for that exit, the intermediate process counts toward its candidate's process limit.
    """
    starting: set[int] = set()
    server = LockServer()
    while True:
        ready = _ready((link.fileno(), *starting, *server.fds()))
        server.answer(ready)
        for intermediate in starting.intersection(ready):
            _wait_for_exit(intermediate)
            starting.remove(intermediate)
        if link.fileno() not in ready:
            continue
        frame, fds = receive(link, FRAME_MAX, FDS)
        if not frame:
            break
        child = os.fork()
        if child == 0:
            link.close()
            server.close_in_fork()
            _become(frame, fds)
        for fd in fds:
            os.close(fd)
        starting.add(os.pidfd_open(child))
        link.sendall(b"forked")
    server.close()
    for intermediate in starting:
        _wait_for_exit(intermediate)


def _ready(fds: Iterable[int]) -> dict[int, int]:
    """Wait until one of the descriptors is ready; return the events of those that are."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return dict(poll.poll())


def _wait_for_exit(pidfd: int) -> None:
    os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    os.close(pidfd)


def _become(frame: bytes, fds: list[int]) -> None:
    try:
        if frame == _EVALUATION:
            fork.enter(fds[0], fds[1], ProgramPipes(*fds[2:]))
        program = runpy.run_module("runners.harness.candidate.program", run_name="candidate")
        orders = socket.socket(fileno=fds[0])
        program["enter"](orders, fds[1:], FORKED.validate_json(frame))
    except BaseException:  # noqa: BLE001 - the outermost frame of this process
        traceback.print_exc(file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(70)


class TemplateProcess:
    """The judge's end of the link to its template."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self.link = link
        self.pid = pid
        self.spares = Spares(self.fork_candidate)
        link.settimeout(30)

    def fork_candidate(self, spec: CandidateSpec | SpareSpec, fds: list[int]) -> None:
        """Fork a candidate or a spare that inherits `fds`; OSError if the template is gone."""
        self._request(encode(spec), fds)

    def start(self, order: Program, pipes: ProgramPipes) -> None:
        """Start a program in a fork of the template; OSError if the template is gone."""
        packed = fork.pack(order)
        try:
            self._request(_EVALUATION, [*packed, pipes.result, pipes.output, pipes.status])
        finally:
            for fd in packed:
                os.close(fd)

    def _request(self, frame: bytes, fds: list[int]) -> None:
        socket.send_fds(self.link, [frame], fds)
        if self.link.recv(64) != b"forked":
            raise ConnectionResetError("the template is gone")

    def close(self) -> None:
        """End the spares, close the link and wait for the template to exit.

        Processes that the task's own code has forked may have the link too, so it is shut down.
        """
        self.spares.close()
        with suppress(OSError):  # the template is gone
            self.link.shutdown(socket.SHUT_RDWR)
        self.link.close()
        os.waitpid(self.pid, 0)


def fork_template() -> TemplateProcess:
    """Fork a template process; call this before the process knows any secret."""
    ours, theirs = pair()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            isolate.detach_streams()
            serve(theirs)
        finally:
            os._exit(0)
    theirs.close()
    return TemplateProcess(ours, pid)


def pack_files(files: dict[str, str]) -> int:
    """Put the files that candidates may see into a sealed memory file, which all of them share."""
    return fork.sealed_file("files", json.dumps(files).encode())


_COMPILER = "torch._inductor.config"
_FLAG = "TORCHINDUCTOR_DETERMINISTIC"
"""The environment variable from which the compiler reads the flag at its import."""


def skip_compiler() -> None:
    """Make `torch.use_deterministic_algorithms` import nothing, here and in forks of this process.

    Torch's own function imports torch's compiler, which takes seconds, only to set one flag there.
    Public tasks call the function around each reference, so every process that compares outputs
    would pay for that. An import in the template is no solution, because the compiler would then
    ignore settings that submissions make before they import it.

    If the compiler is already imported, its flag is set as usual. If it is imported later, it reads
    the flag from the environment.
    """
    original = torch.use_deterministic_algorithms

    @functools.wraps(original)
    def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 - as torch has it
        if _COMPILER in sys.modules:
            original(mode, warn_only=warn_only)
            return
        strictness = "warn" if warn_only else "error"
        torch.set_deterministic_debug_mode(strictness if mode else "default")
        os.environ.pop(_FLAG, None)  # noqa: TID251 - the compiler reads it there
        if mode:
            os.environ[_FLAG] = "1"  # noqa: TID251 - as above

    torch.use_deterministic_algorithms = use_deterministic_algorithms
