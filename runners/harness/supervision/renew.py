"""Resets a fork to the state of a new Python interpreter, except for the imported modules.

Two forks must not share random state. They must not run the parent's exit handlers or use its
environment, streams or working folder.
"""

import atexit
import ctypes
import faulthandler
import gc
import importlib
import io
import logging
import multiprocessing.process
import multiprocessing.util
import os
import signal
import site
import sys
import threading
import types
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import thread
from contextlib import suppress
from pathlib import Path

import torch

_OWN = __name__.partition(".")[0]
_ALIVE: list[object] = []
"""Objects of the parent, kept alive here because freeing them would run their finalizers."""
_exit_state = types.SimpleNamespace(status=1)
"""The exit status of the script."""
_NOT_FLUSHED = 120
"""Python's exit status if flushing its output failed."""


def search_path() -> list[str]:
    """The `sys.path` of a new interpreter; empty if it cannot be derived from this one.

    It omits all entries before the standard library, which come from PYTHONPATH and `-m`.
    """
    library = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    begins = next((at for at, path in enumerate(sys.path) if Path(path).name == library), None)
    if begins is None or site.USER_SITE in sys.path:
        return []
    first, *others = sys.path[begins:]
    return [first, *(path for path in others if Path(path).is_dir())]


def renew(command: Sequence[str]) -> None:
    """Reset this process; `os.environ` and the current folder stay as they are.

    `command` is the command line that would have been executed.
    """
    gc.freeze()  # the parent finalizes its own objects
    _renew_environment()
    _renew_streams()
    _renew_signals()
    _renew_hooks()
    _replace_exit_handlers()
    _renew_multiprocessing()
    _reseed()
    sys.path[:] = ["", *search_path()]
    sys.orig_argv[:] = command
    importlib.invalidate_caches()
    gc.enable()


def interpret(code: str, names: Mapping[str, object]) -> None:
    """Run code like the interpreter's main program, then exit like it; never returns.

    The code cannot import modules of the harness by accident.
    """
    hidden = [each for each in sys.modules if each.partition(".")[0] == _OWN]
    _ALIVE.extend(sys.modules.pop(name) for name in ("__main__", *hidden))
    sys.modules["__main__"] = types.ModuleType("__main__")
    vars(sys.modules["__main__"]).update(names)
    _exit_state.status = _status_of(code)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    _end()  # if the script has removed all exit handlers


def _status_of(code: str) -> int:
    """Run code and return its exit status; prints the traceback if it raised."""
    try:
        exec(code, vars(sys.modules["__main__"]))  # noqa: S102 - the code is the harness's own
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
    except BaseException as error:  # noqa: BLE001 - the outermost frame of what runs
        below = error.__traceback__.tb_next if error.__traceback__ else None
        sys.excepthook(type(error), error.with_traceback(below), below)
    else:
        return 0
    return 1


def _flushed() -> bool:
    """Flush files that were left open; return whether standard output could be flushed.

    Python does that at its finalization, which this process skips because it would take very long.
    """
    for kind in (io.TextIOWrapper, io.BufferedWriter):
        for file in [each for each in gc.get_objects() if issubclass(type(each), kind)]:
            with suppress(Exception):
                file.flush()
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError):
        return False
    finally:
        ctypes.CDLL(None).fflush(None)  # output of C libraries
    return True


def _renew_environment() -> None:
    """Make the C library's environment equal to `os.environ`, and disable user site-packages.

    `-s` does that in an executed evaluation. Here an environment variable does it for Python
    programs that the script starts.
    """
    environment = {**os.environ, "PYTHONNOUSERSITE": "1"}
    os.environ.clear()
    ctypes.CDLL(None).clearenv()
    os.environ.update(environment)
    site.ENABLE_USER_SITE = False


def _renew_streams() -> None:
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        stream = _stream(fd, f"<{name}>", "backslashreplace" if fd == 2 else "surrogateescape")
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _stream(fd: int, name: str, errors: str) -> io.TextIOWrapper:
    """A standard stream as Python creates it for a pipe, in the sandbox's locale."""
    raw = io.FileIO(fd, "w" if fd else "r", closefd=False)
    raw.name = name
    buffered = io.BufferedWriter(raw) if fd else io.BufferedReader(raw)
    stream = io.TextIOWrapper(
        buffered, "utf-8", errors, newline="\n" if fd else None, line_buffering=fd == 2
    )
    stream.mode = "w" if fd else "r"  # type: ignore[misc]  # as Python itself does
    return stream


def _renew_signals() -> None:
    """Reset signals like `exec`: handlers become the default, ignored signals stay ignored."""
    faulthandler.disable()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not signal.SIG_IGN:  # handlers from C look like the default
            first = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, first)


def _renew_hooks() -> None:
    sys.excepthook, sys.displayhook = sys.__excepthook__, sys.__displayhook__
    sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__


def _replace_exit_handlers() -> None:
    """Replace the parent's exit handlers, such as those that delete its files, by a new process's.

    Exit handlers run in reverse order. `_end` exits before those of the parent and of torch run.
    Those of torch only dump statistics on request.
    """
    finalizers = multiprocessing.util._finalizer_registry  # type: ignore[attr-defined]
    queues = vars(thread)["_threads_queues"]
    _ALIVE.extend((weakref.finalize._registry, dict(finalizers), dict(queues)))  # type: ignore[attr-defined]
    # Otherwise this process would delete the parent's temporary folders.
    weakref.finalize._registry = {}  # type: ignore[attr-defined]
    finalizers.clear()
    queues.clear()
    for handler in (
        _end,
        logging.shutdown,
        multiprocessing.util._exit_function,  # type: ignore[attr-defined]
        weakref.finalize._exitfunc,  # type: ignore[attr-defined]
    ):
        atexit.register(handler)


def _end() -> None:
    """Exit, as the last exit handler of this process; the following ones are the parent's."""
    os._exit(_exit_state.status if _flushed() else _NOT_FLUSHED)


def _renew_multiprocessing() -> None:
    """Set the folder from which workers load the script, and a new authentication key."""
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]  # noqa: PTH109
    multiprocessing.process.current_process().authkey = os.urandom(32)
    multiprocessing.util._run_after_forkers()  # type: ignore[attr-defined]


def _reseed() -> None:
    """Reseed the generators that Python does not reseed after a fork."""
    torch.default_generator.seed()
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed()
