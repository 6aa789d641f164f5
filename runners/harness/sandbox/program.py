"""Runs a task's own program in its own sandbox: the steps of the forked child up to `exec`.

Until `exec` only trusted code runs in that process. Submitted code may run before that in the
prelude, which is another process in the same sandbox, without rights. The prelude and all its
processes are killed before the task's files are written. The prelude cannot access the forked
child, which is PID 1 and not dumpable.
"""

import gc
import json
import os
import re
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from runners.contract.evaluation import Limits
from runners.contract.task import IsolationLayer
from runners.harness.sandbox import isolate, syscalls, view
from runners.harness.sandbox.devices import devices
from runners.harness.sandbox.isolate import Layers

READ_ONLY = "read-only task files"
LOOPBACK = "loopback"
RESULT_FD = "POPCORN_FD"
_CARD = re.compile(r"/dev/nvidia\d+")
EXIT_BEFORE_EXEC = 70
"""The exit status of a child that did not reach `exec`."""


@dataclass(frozen=True, slots=True)
class Prelude:
    """A Python script that runs before the program, with only these files."""

    script: str
    files: Mapping[str, str]
    environment: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, slots=True)
class Program:
    """A command, whose first word is a path, and the files in the folder in which it runs."""

    command: tuple[str, ...]
    files: Mapping[str, str]
    environment: Mapping[str, str]
    limits: Limits
    gpu: bool = False
    ranks: bool = False
    """Whether its processes communicate over a loopback interface."""
    prelude: Prelude | None = None
    executables: Mapping[str, int] = field(default_factory=dict)
    """Executable files: name -> descriptor of the content."""
    inherited_fds: frozenset[int] = frozenset()
    """Descriptors that the command inherits in addition to its streams and its result pipe."""
    script: tuple[str, ...] = ()
    """The script and its arguments, if the command is Python; a forked template runs it itself."""


@dataclass(frozen=True, slots=True)
class ProgramPipes:
    """The write ends of the pipes to the judge."""

    result: int
    output: int
    status: int
    """Carries two lines: `{"pid": N}`, and `{"layers": [...], "missing": {...}}`."""


def visible_gpus() -> tuple[str, ...]:
    """The GPUs in `CUDA_VISIBLE_DEVICES`, by UUID or index; all GPUs if it is not set."""
    selected = os.environ.get("CUDA_VISIBLE_DEVICES")
    if selected is None:
        cards = [path for path in devices(gpu=True) if _CARD.fullmatch(path)]
        return tuple(map(str, range(len(cards))))
    return tuple(name.strip() for name in selected.split(",") if name.strip())


def start(program: Program, pipes: ProgramPipes) -> None:
    """Fork a child that becomes the program; its process id is written to the status pipe."""
    collects = gc.isenabled()
    gc.disable()  # finalizers of this process's GPU objects must not run in the child
    child = os.fork()
    if child == 0:
        try:
            become(program, pipes, lambda: execute(program.command))
        except BaseException:  # noqa: BLE001 - the outermost frame of this process
            traceback.print_exc(file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(EXIT_BEFORE_EXEC)
    if collects:
        gc.enable()
    os.waitpid(child, 0)  # the intermediate process, which exits as soon as its child runs


def become(
    program: Program,
    pipes: ProgramPipes,
    run: Callable[[], None],
    kept: frozenset[int] = frozenset(),
) -> None:
    """Turn this fresh fork into PID 1 of a sandbox and call `run`, which never returns.

    The descriptors in `kept`, and those of `pipes`, must not be inheritable.
    """
    for stream in (1, 2):
        os.dup2(pipes.output, stream)
    sys.stdout, sys.stderr = (os.fdopen(fd, "w", closefd=False) for fd in (1, 2))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    layers, job = isolate.enter_keeping_rights(
        program.limits,
        lambda pid: _write_line(pipes.status, {"pid": pid}),
        keep_fds=frozenset({pipes.result, pipes.status, *program.executables.values()})
        | program.inherited_fds
        | kept,
        gpu=program.gpu,
    )
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    os.environ.update(program.environment)
    os.environ[RESULT_FD] = str(pipes.result)
    isolated = job == view.JOB and IsolationLayer.NAMESPACES in layers.active
    if program.prelude and isolated:
        _run_prelude(program.prelude, program, job)
    access = _set_up(program, layers, job)
    isolate.drop_rights(layers, program.limits, access)
    _write_line(pipes.status, {"layers": layers.active, "missing": layers.missing})
    for descriptor in (pipes.result, *program.inherited_fds):
        os.set_inheritable(descriptor, True)  # noqa: FBT003 - the library's own signature
    run()


def _set_up(program: Program, layers: Layers, job: str) -> isolate.SandboxAccess:
    """Write the files and set up what the program needs, before rights are given up."""
    readable: tuple[str, ...] = ()
    shown = job == view.JOB and layers.attempt(
        READ_ONLY, lambda: view.place(program.files, program.executables)
    )
    if not shown:
        layers.missing.setdefault(READ_ONLY, "the process has no root of its own to show them in")
        readable = (view.place_openly(program.files, job, program.executables),)
    tcp = program.ranks and IsolationLayer.NETWORK in layers.active
    if tcp:
        layers.attempt(LOOPBACK, syscalls.raise_loopback)
    return isolate.SandboxAccess(job, gpu=program.gpu, readable=readable, tcp=tcp)


def _run_prelude(prelude: Prelude, program: Program, job: str) -> None:
    """Run the prelude without rights until it ends or times out, then kill all its processes."""
    view.place(prelude.files)
    child = os.fork()
    if child == 0:
        try:
            isolate.drop_rights(
                Layers(), program.limits, isolate.SandboxAccess(job, gpu=program.gpu)
            )
            sink = os.open(os.devnull, os.O_WRONLY)
            os.set_inheritable(sink, True)  # noqa: FBT003 - the library's own signature
            os.environ.update({**prelude.environment, RESULT_FD: str(sink)})
            execute(python(prelude.script))
        finally:
            os._exit(EXIT_BEFORE_EXEC)
    select.select([os.pidfd_open(child)], [], [], prelude.seconds)
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # as PID 1: all other processes of this namespace
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def execute(command: tuple[str, ...]) -> None:
    """Execute the command with the current environment."""
    os.execve(command[0], command, os.environ)  # noqa: S606 - no shell wanted


def _write_line(fd: int, what: Mapping[str, object]) -> None:
    os.write(fd, json.dumps(what).encode() + b"\n")


def python(script: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a Python script by its path.

    The option -s keeps files that a prelude wrote to its home from being imported as site-packages.
    """
    return (sys.executable, "-s", script, *arguments)


def own_script(path: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a script of the harness, given its path in the package."""
    return python(str(Path(__file__).resolve().parents[1] / path), *arguments)
