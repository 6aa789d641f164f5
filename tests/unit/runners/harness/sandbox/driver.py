"""Plays the judge for the sandbox's tests: forks a candidate that runs a script, and waits."""

import ctypes
import json
import os
import socket
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[5])  # the checkout, not this folder

from runners.contract.evaluation import Limits  # noqa: E402 - found by the path above
from runners.harness.sandbox import (  # noqa: E402 - found by the path above
    filters,
    isolate,
    outer,
    view,
)
from runners.harness.sandbox import syscalls as kernel  # noqa: E402 - found by the path above
from tests.doubles import footprints  # noqa: E402 - found by the path above

STEPS = {
    "capabilities": (kernel, "drop_capabilities"),
    "filesystem": (view, "build"),
    "landlock": (filters, "restrict_paths"),
    "limits": (isolate, "set_limits"),
    "namespaces": (isolate, "_unshare_all"),
    "no core dumps": (isolate, "forbid_dumps"),
    "no nested namespaces": (isolate, "_forbid_namespaces"),
    "own /proc": (view, "mount_proc"),
    "own user": (isolate, "leave_root"),
    "seccomp": (filters, "refuse_calls"),
}


def refuse(*_: object, **__: object) -> None:
    raise OSError("refused here")


def candidate(order: dict[str, object], announcer: socket.socket) -> None:
    layers, missing = isolate.enter(
        Limits.model_validate_json(str(order["limits"])),
        lambda pid: announcer.sendall(str(pid).encode()),
        keep_fds=frozenset({announcer.fileno()}),
        gpu=False,
    )
    say({"layers": layers, "missing": missing})
    scope: dict[str, object] = {"kept": announcer}
    exec(compile(str(order["script"]), "script", "exec"), scope)  # noqa: S102 - the test's own text
    say({"said": scope.get("said")})


def say(found: object) -> None:
    os.write(1, json.dumps(found).encode() + b"\n")


def read_memory(pid: int, address: int, length: int) -> bytes:
    libc = ctypes.CDLL(None, use_errno=True)
    copy = ctypes.create_string_buffer(length)
    here = (ctypes.c_size_t * 2)(ctypes.addressof(copy), length)
    there = (ctypes.c_size_t * 2)(address, length)
    got = libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return copy.raw if got == length else os.strerror(ctypes.get_errno()).encode()


def main() -> None:
    footprints.begin()
    order = json.loads(sys.argv[1])
    for layer in order["refused"]:  # as a kernel without it would
        setattr(*STEPS[layer], refuse)
    if order["nested"]:
        outer.confine([], strict=False, gpu=False)
    kernel.adopt_orphans()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    intermediate = os.fork()
    if intermediate == 0:
        try:
            candidate(order, theirs)
        finally:
            sys.stderr.flush()
            os._exit(0)
    theirs.close()
    os.waitpid(intermediate, 0)
    pid = int(ours.recv(100))
    while word := ours.recv(1000):  # the script may ask for its own memory to be read
        address, length = map(int, word.split())
        ours.sendall(read_memory(pid, address, length))
    os.waitpid(pid, 0)


main()
