"""Runs a task's own evaluation in a fork of the warm template, without importing torch again.

The process gets the same sandbox as an executed program. Then it resets itself to the state of a
new Python interpreter, except for the loaded modules, and runs the script. If the script could
notice the difference (see `fits`), Python is executed instead.

Unlike `exec`, a fork keeps the addresses of loaded modules and the secret of `hash`. Candidates of
the native grader share both with their template too.
"""

import fcntl
import json
import os
import re
import runpy
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from runners.harness.sandbox import program, syscalls
from runners.harness.sandbox.program import Lines, Program
from runners.harness.supervision import fork_server, renew

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


_SPAWNS = "multiprocessing"


def pack(order: Program) -> tuple[int, int]:
    """Put the program and its environment into sealed memory files; return their descriptors.

    The template passes them on and never reads them, because the environment contains a seed.
    """
    public = replace(order, environment={})
    return _file(_ORDER.dump_json(public)), _file(json.dumps(dict(order.environment)).encode())


def _file(content: bytes) -> int:
    fd = os.memfd_create("order", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
    return fd


def _content(fd: int) -> bytes:
    content = os.pread(fd, os.fstat(fd).st_size, 0)
    os.close(fd)
    return content


def enter(order_fd: int, environment: int, lines: Lines) -> None:
    """Run a task's evaluation in this fresh fork of the template; never returns."""
    order = _ORDER.validate_json(_content(order_fd))
    program.become(
        order, lines, lambda: _run(order, environment, lines), kept=frozenset({environment})
    )


def fits(files: Mapping[str, str]) -> bool:
    """Whether a script with these files behaves here as in a new interpreter."""
    usual = sys.flags.hash_randomization and not any(getattr(sys.flags, it) for it in _ALTERING)
    options = bool(sys.warnoptions or sys._xoptions)
    shadowed = {Path(name).parts[0].split(".")[0] for name in files} & sys.modules.keys()
    settings = any(_READ_AT_IMPORT.search(text) for text in files.values())
    return bool(usual and renew.search_path() and not (options or shadowed or settings))


def _run(order: Program, environment: int, lines: Lines) -> None:
    warm = fits(order.files)
    if warm and os.getpid() == 1 and any(_SPAWNS in text for text in order.files.values()):
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        fork_server.found()  # before the environment is set, because its seed must stay unknown
    os.environ.update(json.loads(_content(environment)))
    if not warm:
        program.execute(order.command)
    os.close(lines.status)  # as `exec` does
    renew.renew(order.command)
    renew.interpret("launch(arguments)", {"launch": _launch, "arguments": [*order.script]})


def _launch(arguments: list[str]) -> None:
    """Run a script as `kernelbot/launch.py` does."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    sys.path[0] = os.getcwd()  # noqa: PTH109 - a string is wanted
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
