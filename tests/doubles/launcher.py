"""Starts our programs from processes that have imported everything already.

A short program spends most of its time on imports; the harness needs two seconds for torch. Inside
`warm`, `python -m` of one of our programs, or the process that parses untrusted text, is not
started by the interpreter, but forked by a template that has imported what the program needs. The
program is a child of the process that started it, with its own arguments, environment, folder and
streams. It inherits nothing else. It runs the same code as `python -m`, and can be killed and
stopped. A program that starts others gets its own template, created before it begins. Ranked runs
have few rounds.

The interpreter starts every other module, and a command with an option of the interpreter or, for
a harness, with `PYTHONPATH`.
"""

import atexit
import ctypes
import gc
import importlib
import math
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, NoReturn
from unittest.mock import patch

from pydantic import BaseModel

from runners.contract import comparison, evaluation
from runners.harness.sandbox.syscalls import use_huge_pages

ROOT = Path(__file__).resolve().parents[2]
STARTS_S = 60
_FRAME_MAX = 1 << 20
_ROOM = "/" * (1 << 11)
"""An argument of a template; the arguments of a program are shown in its place."""
_PYTHON = sys.executable
_DESCRIPTOR_BYTES = 2048
"""How many bytes of a thread's descriptor are searched for its id."""
_PARENT, _CHILD_SETTID = 0x8000, 0x01000000
_CLONE = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
_HELD = ctypes.PyDLL(None)
"""The C library, called with the interpreter's lock held."""
_fork_exec = subprocess._fork_exec  # type: ignore[attr-defined]

HARNESS = "runners.harness"
CONTAINER = "modal._container_entrypoint"
PARSER = "bot.services.parser_process"
"""Started by `-c` with a text that imports its `main`, and with the folder of our modules."""
CANDIDATES = "tests.doubles.candidates"
"""Started only by that module."""
TEMPLATE = "tests.doubles.launcher"
"""A template that is forked from one that has imported torch."""
_JUDGE = (
    "runners.harness.__main__", "runners.harness.server",
    "runners.harness.graders.native", "runners.harness.graders.popcorn",
)  # fmt: skip
_DOORS = (
    "bot.__main__", "bot.app.installation", "bot.cli.client", "bot.cli.errors", "bot.cli.follow",
    "bot.discord.client", "bot.web.app",
    "matplotlib.backends.backend_agg", "matplotlib.figure",
)  # fmt: skip
IMPORTED = {
    "judge": (*_JUDGE, CANDIDATES),
    "doors": _DOORS,
    "doors and judge": _DOORS,
    "container": (CONTAINER,),
}
"""What each kind of template imports; what a harness needs comes first."""
FORKED = {"doors and judge", "container"}
"""Kinds that are forked from "judge", because importing torch takes seconds."""
BRIEF_ROUNDS = evaluation.RoundPolicy(looks=(3,), samples=10)
"""The rounds of a ranked run: a fifth of the usual work. The usual rounds have their own tests."""
FLUSH_BYTES = 4 << 20
"""What a judge writes before each call on the CPU: more than the cache of a core."""
JUDGING = {"demo", "judge", "submit", "task", "up", "worker"}
"""Commands that start harnesses where the runner is local."""


class Start(BaseModel):
    """A program to start."""

    module: str
    """What follows `-m`; for the parser what its text imports."""
    arguments: list[str]
    environment: dict[str, str]
    folder: str
    own_session: bool

    @property
    def template(self) -> str | None:
        """The kind of template that it needs; None if the interpreter starts it."""
        harness = self.module == HARNESS and "PYTHONPATH" not in self.environment
        template = self.module == TEMPLATE and FORKED & {*self.arguments[:1]}
        if harness or template or self.module == CANDIDATES:
            return "judge"
        if self.module == "bot":
            local = "local" in self.environment.get("PODIUM_RUNNERS", "local")
            return "doors and judge" if local and JUDGING & {*self.arguments[:1]} else "doors"
        return {CONTAINER: "container", PARSER: "doors"}.get(self.module)

    @property
    def searched(self) -> list[str]:
        """The first folders of its search path for modules."""
        if self.module == PARSER:
            return self.arguments
        paths = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        return [self.folder, *filter(None, paths)]

    def run(self) -> int | None:
        """Run the program in this process; return its exit status."""
        if self.module == CONTAINER:
            del sys.modules[self.module]
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
            return None
        if self.module == TEMPLATE:
            _be_template(*self.arguments[:1])
            return 0
        alone = self.module in {PARSER, CANDIDATES}
        main = self.module if alone else f"{self.module}.__main__"
        status: int | None = importlib.import_module(main).main()
        return status


@dataclass
class Template:
    """The socket to a process that forks programs."""

    line: socket.socket
    modules: frozenset[str] = frozenset()
    """The modules that it may start; only set for one program's own template."""
    one: threading.Lock = field(default_factory=threading.Lock)

    def fork(self, start: Start, streams: Sequence[int]) -> int:
        """Have it fork a program, which becomes this process's child; return its process id."""
        with self.one:
            socket.send_fds(self.line, [start.model_dump_json().encode()], streams)
            answer = self.line.recv(32)
        if not answer:
            raise ChildProcessError("a template has ended")
        return int(answer)


@contextmanager
def warm(only: Template | None = None) -> Iterator[None]:
    """Start programs from templates in the block, by default from this process's own."""

    def fork_exec(*given: Any) -> int:  # noqa: ANN401 - what `Popen` tells it, which is much
        start = _start_of(given)
        kind = start and start.template
        if start is None or kind is None or (only and start.module not in only.modules):
            return int(_fork_exec(*given))
        reading, _, _, writing, _, complaining = given[6:12]
        streams = (reading, writing, complaining)
        given_on = [number if file < 0 else file for number, file in enumerate(streams)]
        return (only or _template(kind)).fork(start, given_on)

    with patch.object(subprocess, "_fork_exec", fork_exec):
        yield


def _start_of(given: Sequence[Any]) -> Start | None:
    """The program in the arguments of `fork_exec`, if it is a module for this interpreter."""
    words = [os.fsdecode(word) for word in given[0]]
    kept, folder, environment = given[3:6]
    if words[:3] == [_PYTHON, "-I", "-c"] and f"from {PARSER} import main" in words[3]:
        words[1:4] = "-m", PARSER
    if words[:2] != [_PYTHON, "-m"] or len(words) < 3 or len(kept) > 1:
        return None
    if environment is None:
        environment = [f"{name}={value}" for name, value in os.environ.items()]
    variables = (os.fsdecode(each).partition("=") for each in environment)
    return Start(
        module=words[2],
        arguments=words[3:],
        environment={name: value for name, _, value in variables},
        folder=os.fsdecode(folder) if folder else str(Path.cwd()),
        own_session=bool(given[15]),
    )


def fork(start: Start, streams: Sequence[int]) -> int:
    """Have a template of this process fork a program; return its process id."""
    return _template(start.template or "").fork(start, streams)


@cache
def _template(kind: str) -> Template:
    """This process's own template, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, warm() if kind in FORKED else nullcontext():
        server = subprocess.Popen(
            [sys.executable, "-m", TEMPLATE, kind, _ROOM],
            cwd=ROOT,
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "OMP_WAIT_POLICY": "PASSIVE"},
        )

    def end() -> None:
        ours.close()
        server.wait(STARTS_S)

    atexit.register(end)
    return Template(ours)


def main() -> None:
    """Run as a template whose socket is standard input."""
    evaluation.RANKED_ROUNDS = evaluation.HOST_ROUNDS = BRIEF_ROUNDS  # before others import it
    comparison.NOISY_MOST = math.inf  # a few short rounds beside other tests are noisy
    _be_template(sys.argv[1])


def _be_template(kind: str) -> None:
    gc.disable()
    for name in IMPORTED[kind]:
        importlib.import_module(name)
        if name in _JUDGE:
            _OF_HARNESS.update(sys.modules)
    if kind == "judge":
        _make_judges_cheap()
    if _DOORS[0] in sys.modules:
        importlib.import_module("bot.cli.app").build()
    gc.freeze()
    gc.enable()
    _end_threads()
    use_huge_pages(STARTS_S)
    serve(socket.socket(fileno=os.dup(0)))


def _make_judges_cheap() -> None:
    """Let judges write less to flush caches, and not move memory that has huge pages already."""
    caches: Any = sys.modules["runners.harness.judge.cpu_caches"]
    caches.FLUSH_MOST = FLUSH_BYTES
    server: Any = sys.modules["runners.harness.server"]
    server.HUGE_PAGES_S = 0


_SEARCHED = sys.path[1:]
"""The search path after the program's own folder and `PYTHONPATH`."""
_OF_HARNESS: dict[str, Any] = {}
"""The modules that a ready harness has loaded."""


def serve(line: socket.socket) -> None:
    """Fork a program for every request, until the socket is closed."""
    while True:
        frame, files, _, _ = socket.recv_fds(line, _FRAME_MAX, 3)
        if not frame:
            return
        program = _fork_for_parent()
        if program == 0:
            _become(Start.model_validate_json(frame), files)
        line.sendall(str(program).encode())
        for file in files:
            os.close(file)


def _end_threads() -> None:
    """Fork once, because numeric libraries then end their idle threads."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def _fork_for_parent() -> int:
    """Fork like `os.fork`, but make the new process a child of this one's parent.

    The C library caches the thread's id, which `fork` would have corrected.
    """
    python, clone = ctypes.pythonapi, _HELD.syscall
    clone.restype = ctypes.c_long
    flags = _PARENT | _CHILD_SETTID | signal.SIGCHLD
    number = ctypes.c_void_p(_kept_number())
    python.PyOS_BeforeFork()
    pid = int(clone(_CLONE, ctypes.c_long(flags), None, None, number, number))
    if pid == 0:
        python.PyOS_AfterFork_Child()
    else:
        python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise ChildProcessError("the system does not fork")
    return pid


@cache
def _kept_number() -> int:
    """The address at which the C library caches the id of this thread, the only one."""
    _HELD.pthread_self.restype = ctypes.c_void_p
    begin: int = _HELD.pthread_self()
    size = ctypes.sizeof(ctypes.c_int)
    places = range(begin, begin + _DESCRIPTOR_BYTES, size)
    number = threading.get_native_id()
    return next(each for each in places if ctypes.c_int.from_address(each).value == number)


def _become(start: Start, streams: list[int]) -> NoReturn:
    """Run this program in this process, and exit with its status."""
    status = 1
    try:
        with _dressed_as(start, streams):
            sys.exit(start.run())
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does with what nobody caught
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter waits for them
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


@contextmanager
def _dressed_as(start: Start, streams: list[int]) -> Iterator[None]:
    """Set up this process like a new process of the program."""
    if start.own_session:
        os.setsid()
    if start.module == HARNESS:
        for name in sys.modules.keys() - _OF_HARNESS.keys():
            del sys.modules[name]
    for number, file in enumerate(streams):
        os.dup2(file, number)
    os.closerange(len(streams), 1 << 20)
    own = _fork_template() if start.module in ("bot", CONTAINER) else None
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)
    tempfile.tempdir = None
    _show([_PYTHON, "-m", start.module, *start.arguments])
    sys.argv = [start.module, *start.arguments]
    sys.path[:] = [*start.searched, *_SEARCHED]
    with warm(own) if own else nullcontext():
        yield


def _fork_template() -> Template:
    """A template that is forked before this process becomes a program."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        return Template(ours, frozenset({PARSER, HARNESS} if _OF_HARNESS else {PARSER}))
    try:
        ours.close()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        serve(theirs)
    finally:
        os._exit(0)


def _show(line: list[str]) -> None:
    """Show these as the arguments of this process, as in `ps`."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])
    room = end - begin
    shown = "\0".join(line).encode()[: room - 1] + b"\0"
    ctypes.memmove(begin, shown.rjust(room, b"/"), room)


class Command(subprocess.Popen[str]):
    """A `podium` command with an empty stdin."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | None = None,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.STDOUT,
    ) -> None:
        super().__init__(
            [sys.executable, "-m", "bot", *arguments],
            stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, text=True,
            env={**environment}, cwd=folder,
        )  # fmt: skip


def run(
    arguments: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_s: float
) -> "subprocess.CompletedProcess[str]":
    """Run a command like `subprocess.run` with captured text; kill it if it takes too long."""
    with Command(arguments, environment, folder, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(["podium", *arguments], process.returncode, out, err)


if __name__ == "__main__":
    main()
