"""Makes of a fork what Python is at its start, save that what was imported still is.

Nothing random may be the same in two forks, nothing that their common parent would do at its end
may be done by them, and nothing of its environment, its streams or its folder may be left.
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
_KEPT: list[object] = []
"""What is the parent's and has no place here: dropped, all that hangs on it would be ended."""
_ending = types.SimpleNamespace(status=1)
"""How the script ended."""
_NOT_FLUSHED = 120
"""The exit status of Python when the end of its output was lost."""


def search_path() -> list[str]:
    """Where a new interpreter would look for modules; empty when that cannot be told from here.

    What PYTHONPATH and `-m` gave to this one stands before the standard library.
    """
    library = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    begins = next((at for at, path in enumerate(sys.path) if Path(path).name == library), None)
    if begins is None or site.USER_SITE in sys.path:
        return []
    first, *others = sys.path[begins:]
    return [first, *(path for path in others if Path(path).is_dir())]


def renew(command: Sequence[str]) -> None:
    """Be as new, in the folder where this process stands and with the environment that it has.

    `command` is what would have been executed.
    """
    gc.freeze()  # what the parent has is ended by the parent
    _renew_environment()
    _renew_streams()
    _renew_signals()
    _renew_hooks()
    _forget_endings()
    _renew_multiprocessing()
    _draw_anew()
    sys.path[:] = ["", *search_path()]
    sys.orig_argv[:] = command
    importlib.invalidate_caches()
    gc.enable()


def interpret(code: str, names: Mapping[str, object]) -> None:
    """Run code as the interpreter runs what it is started with, and end as it ends: never returns.

    No module of the harness is found by it.
    """
    hidden = [each for each in sys.modules if each.partition(".")[0] == _OWN]
    _KEPT.extend(sys.modules.pop(name) for name in ("__main__", *hidden))
    sys.modules["__main__"] = types.ModuleType("__main__")
    vars(sys.modules["__main__"]).update(names)
    _ending.status = _status_of(code)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    _end()  # the script forgot all that was to be done


def _status_of(code: str) -> int:
    """The exit status that code comes to, with its traceback printed where it raised."""
    try:
        exec(code, vars(sys.modules["__main__"]))  # noqa: S102 - our own words
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
    """Write what is buffered in files that were left open; whether standard output took it.

    Python does so while it takes itself apart, which here would cost more than all the rest.
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
        ctypes.CDLL(None).fflush(None)  # what libraries in C have printed
    return True


def _renew_environment() -> None:
    """Leave nothing that was set besides `os.environ`, and keep planted packages out.

    A Python program that the script starts would else not be told of the `-s` which this process
    has not been started with.
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
    """A standard stream as Python makes it of a pipe, in the locale that a sandbox has."""
    raw = io.FileIO(fd, "w" if fd else "r", closefd=False)
    raw.name = name
    buffered = io.BufferedWriter(raw) if fd else io.BufferedReader(raw)
    stream = io.TextIOWrapper(
        buffered, "utf-8", errors, newline="\n" if fd else None, line_buffering=fd == 2
    )
    stream.mode = "w" if fd else "r"  # type: ignore[misc]  # as Python itself does
    return stream


def _renew_signals() -> None:
    """Handlers end with `exec`, while what is ignored stays so."""
    faulthandler.disable()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not signal.SIG_IGN:  # those of C look like the default
            first = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, first)


def _renew_hooks() -> None:
    sys.excepthook, sys.displayhook = sys.__excepthook__, sys.__displayhook__
    sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__


def _forget_endings() -> None:
    """Leave to the parent what is done at its end, such as removing its files; the libraries' stay.

    Those of torch only dump statistics that were asked for.
    """
    finalizers = multiprocessing.util._finalizer_registry  # type: ignore[attr-defined]
    queues = vars(thread)["_threads_queues"]
    _KEPT.extend((weakref.finalize._registry, dict(finalizers), dict(queues)))  # type: ignore[attr-defined]
    weakref.finalize._registry = {}  # type: ignore[attr-defined]  # else folders are removed
    finalizers.clear()
    queues.clear()
    for ending in (
        _end,
        logging.shutdown,
        multiprocessing.util._exit_function,  # type: ignore[attr-defined]
        weakref.finalize._exitfunc,  # type: ignore[attr-defined]
    ):
        atexit.register(ending)


def _end() -> None:
    """Come last of what this process does at its end: what follows is its parent's."""
    os._exit(_ending.status if _flushed() else _NOT_FLUSHED)


def _renew_multiprocessing() -> None:
    """The folder from which workers load the script, and a secret which is this process's own."""
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]  # noqa: PTH109
    multiprocessing.process.current_process().authkey = os.urandom(32)
    multiprocessing.util._run_after_forkers()  # type: ignore[attr-defined]


def _draw_anew() -> None:
    """Seed what Python does not seed after a fork: each phase must draw other numbers."""
    torch.default_generator.seed()
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed()
