"""A task's evaluation in a fork of the warm template, which need not import torch again.

The process is confined as it is for a program that is executed. Then it becomes what Python is at
its start, save for what is loaded already, and runs the script. Where the script might tell the
difference (`fits`) Python is executed as ever.

What `exec` would draw again and a fork keeps are the addresses of what is loaded and the secret of
`hash`. A candidate of the native grader has both from the same template.
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
"""Flags of Python which change what a script does, and which an evaluation never has."""
_READ_AT_IMPORT = re.compile(
    r"\b(?:OMP|GOMP|KMP|MKL|MKLDNN|DNNL|ONEDNN|OPENBLAS|BLIS|ATEN|NPY|NUMPY|MALLOC|LD|TRITON)_"
    r"|\bPYTHON[A-Z]|\b(?:PY)?TORCH(?!_CHECK|_CUDA_ARCH|_EXTENSION|_LIBRARY|_NCCL|_SYMM)[A-Z]*_[A-Z]"
)
"""Settings that are read while torch or Python is loaded: who names one may want it to count."""


_SPAWNS = "multiprocessing"


def pack(order: Program) -> tuple[int, int]:
    """The order and its environment as sealed memory files; gives their descriptors.

    The template hands them on and never reads them, for a seed is in the environment.
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
    """Become the evaluation that is ordered; never returns. For a fresh fork of the template."""
    order = _ORDER.validate_json(_content(order_fd))
    program.become(
        order, lines, lambda: _run(order, environment, lines), kept=frozenset({environment})
    )


def fits(files: Mapping[str, str]) -> bool:
    """Whether a script next to these files finds here all that a new interpreter would give it."""
    usual = sys.flags.hash_randomization and not any(getattr(sys.flags, it) for it in _ALTERING)
    told = bool(sys.warnoptions or sys._xoptions)
    shadowed = {Path(name).parts[0].split(".")[0] for name in files} & sys.modules.keys()
    early = any(_READ_AT_IMPORT.search(text) for text in files.values())
    return bool(usual and renew.search_path() and not (told or shadowed or early))


def _run(order: Program, environment: int, lines: Lines) -> None:
    warm = fits(order.files)
    if warm and os.getpid() == 1 and any(_SPAWNS in text for text in order.files.values()):
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        fork_server.found()  # which must know nothing of the environment
    os.environ.update(json.loads(_content(environment)))
    if not warm:
        program.execute(order.command)
    os.close(lines.status)  # as `exec` does
    renew.renew(order.command)
    renew.interpret("launch(arguments)", {"launch": _launch, "arguments": [*order.script]})


def _launch(arguments: list[str]) -> None:
    """As `kernelbot/launch.py` does."""
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    sys.path[0] = os.getcwd()  # noqa: PTH109 - a string is wanted
    sys.argv = arguments
    runpy.run_path(arguments[0], run_name="__main__")
