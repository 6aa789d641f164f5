"""Puts a freshly forked candidate into its sandbox before it imports the submission.

Each step needs the rights that a later step gives up, so the order is fixed:

1. If the process is root, mount the new root. Otherwise the child of step 3 mounts it.
2. Become another user and create the namespaces.
3. Fork; the child is PID 1 of the new PID namespace.
4. In that child, take every step that only removes rights.

`PR_SET_DUMPABLE` stays 1, because the judge, which is the same user in the outer namespace, reads
outputs with `process_vm_readv`. Nothing inside the sandbox can use that: other candidates have
other user namespaces, and the seccomp filter refuses the call.
"""

import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from runners.contract.evaluation import Limits
from runners.contract.task import IsolationLayer
from runners.harness.protocol import builds
from runners.harness.sandbox import filters, locks, process_limits, syscalls, view


class Layers:
    """Which layers are active, and why others are missing."""

    def __init__(self) -> None:
        self.active: list[str] = []
        self.missing: dict[str, str] = {}

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Run one step; if the Linux kernel refuses it, only this layer is missing."""
        try:
            step()
        except (OSError, ValueError) as error:
            self.missing[name] = str(error)
            return False
        self.active.append(name)
        return True


NOBODY = 65534
_OWN_USERS = 0x70000000
"""The first of the ids that harnesses of root use outside of their namespaces: this plus a process
id. Linux counts some resources for each user, such as pages of pipes, so a submission could take
them from the other slots of the machine. Inside, all have the same id."""
CAPABILITIES = "capabilities"
NO_DUMPS = "no core dumps"
NESTED = "no nested namespaces"
OWN_USER = "own user"
PROC = "own /proc"
_KEPT = ("LANG", "OMP_NUM_THREADS", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "TORCH_CUDA_ARCH_LIST")
SEARCH_PATH = f"{sys.prefix}/bin:/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin"
"""The interpreter's folder comes first, because its `ninja` builds inline CUDA."""
_LOCKED_BYTES = 8 << 20
_CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")
_NO_DUMP = 1
"""With this RLIMIT_CORE Linux writes no core dump and starts no handler of `core_pattern`.

With 0 it writes none either, but starts the handler, which is outside of every sandbox and has
no time limit (see core(5) and `coredump_pipe` in Linux). The filter prevents any change of it.
"""
_SIGNALS = 256
"""The most pending signals. This also limits timers that send signals, because such a timer can
expire while its candidate is frozen."""
_FIRST_FREE_FD = 3

Announce = Callable[[int], object]
LayerReport = tuple[tuple[str, ...], dict[str, str]]


def enter(
    limits: Limits, announce: Announce, *, keep_fds: frozenset[int], gpu: bool
) -> LayerReport:
    """Put this process into a sandbox; returns only in PID 1 of the new namespaces.

    `announce` is called once, after the intermediate process has exited, with the id that PID 1 has
    in the caller's namespace. Returns the active layers, and for each missing layer the reason.
    """
    layers, job = enter_keeping_rights(limits, announce, keep_fds=keep_fds, gpu=gpu)
    drop_rights(layers, limits, SandboxAccess(job, gpu=gpu))
    return tuple(layers.active), layers.missing


def enter_keeping_rights(
    limits: Limits, announce: Announce, *, keep_fds: frozenset[int], gpu: bool
) -> tuple[Layers, str]:
    """Do the first half of `enter`: create the namespaces and the new root, but give up no rights.

    Returns the layers so far and the work folder. No submitted code may run in this process before
    `drop_rights`.
    """
    layers = Layers()
    as_root = os.getuid() == 0
    if as_root:
        layers.attempt(IsolationLayer.FILESYSTEM, lambda: build_view(limits.disk, gpu=gpu))
        layers.attempt(OWN_USER, lambda: leave_root(layers))
    make_namespaces(layers)
    leave_parent(announce)
    syscalls.adopt_orphans()  # as PID 1 does, also without namespaces
    os.setsid()
    if not as_root:
        layers.attempt(IsolationLayer.FILESYSTEM, lambda: view.build(limits.disk, gpu=gpu))
    if IsolationLayer.NAMESPACES in layers.active:
        layers.attempt(NESTED, _forbid_namespaces)
        # From here on it can be read-only.
        layers.attempt(PROC, lambda: view.mount_proc(innermost=True, gpu=gpu))
    job = view.enter_job(own_view=IsolationLayer.FILESYSTEM in layers.active)
    _clean_environment(job)
    close_others(keep_fds | locks.kept_fds())
    return layers, job


def build_view(scratch_bytes: int, *, gpu: bool) -> None:
    """Give this process its own mount namespace and root."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    view.build(scratch_bytes, gpu=gpu)


def leave_root(layers: Layers) -> None:
    """Become another user permanently; OSError if that user could not read the interpreter.

    It is a user of this harness only, unless other users may have to remove its files or the system
    has no such user.
    """
    if IsolationLayer.FILESYSTEM in layers.missing and (path := view.unreadable_by_others()):
        raise OSError(f"only root can read {path}")
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    if IsolationLayer.FILESYSTEM in layers.active:
        own = _OWN_USERS + os.getpid()
        with suppress(OSError):  # in a user namespace that does not map it
            os.setresuid(own, own, own)
    if os.getuid() == 0:
        os.setresuid(NOBODY, NOBODY, NOBODY)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # otherwise root owns /proc/self/uid_map


def make_namespaces(layers: Layers) -> None:
    """Enter new user, mount, IPC, UTS and network namespaces; the next child is PID 1."""
    if layers.attempt(IsolationLayer.NAMESPACES, _unshare_all):
        layers.attempt(IsolationLayer.NETWORK, lambda: syscalls.unshare(syscalls.CLONE_NEWNET))
    else:
        layers.missing[IsolationLayer.NETWORK] = layers.missing[IsolationLayer.NAMESPACES]


def _unshare_all() -> None:
    user, group = os.getuid(), os.getgid()
    own = syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWNS | syscalls.CLONE_NEWPID
    syscalls.unshare(own | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS)
    Path("/proc/self/setgroups").write_text("deny")
    inside = NOBODY if user >= _OWN_USERS else user
    Path("/proc/self/uid_map").write_text(f"{inside} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def leave_parent(announce: Announce) -> None:
    """Fork; only the child returns, once its parent has exited and the judge is its parent.

    The child is announced only then, because before that the judge cannot wait for its exit. The
    parent sends the child the id that the child has in the outer namespace.
    """
    parent = os.pidfd_open(os.getpid())
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.write(writer, str(child).encode())
        os._exit(0)
    os.close(writer)  # otherwise the read never ends if the parent is killed before it writes
    select.select([parent], [], [])
    announce(int(os.read(reader, 32)))
    os.close(parent)
    os.close(reader)


def _forbid_namespaces() -> None:
    Path("/proc/sys/user/max_user_namespaces").write_text("0")


def _clean_environment(job: str) -> None:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update(
        {
            "LANG": "C.UTF-8",
            "PATH": SEARCH_PATH,
            "HOME": job,
            "TMPDIR": view.SCRATCH[0] if job == view.JOB else job,
            "USER": "nobody",
        }
    )
    os.environ.update(kept)
    os.environ.update(builds.environment(Path(job)))
    tempfile.tempdir = None  # the cached value is from the process that forked this one


def detach_streams() -> None:
    """Replace this process's standard input and output, which belong to the harness.

    The backend sends requests and receives evaluations on them. It must read the end of the output
    when the harness ends, so no other process may keep the output open.
    """
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def close_others(keep: frozenset[int]) -> None:
    """Close every descriptor except these and the standard streams."""
    start = _FIRST_FREE_FD
    highest = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for descriptor in (*sorted(fd for fd in keep if fd >= start), highest):
        os.closerange(start, descriptor)
        start = descriptor + 1


@dataclass(frozen=True, slots=True)
class SandboxAccess:
    """What a process may still access after it has given up its rights."""

    job: str
    gpu: bool
    readable: tuple[str, ...] = ()
    """Additional readable folders if the process has no root of its own."""
    tcp: bool = False
    """Whether TCP is allowed, for processes that communicate over their own loopback interface."""


def drop_rights(layers: Layers, limits: Limits, access: SandboxAccess) -> None:
    """Do the second half of `enter`: give up rights permanently, also across `exec`."""
    job, gpu = access.job, access.gpu
    layers.attempt(IsolationLayer.LIMITS, lambda: set_limits(limits, gpu=gpu))
    layers.attempt(NO_DUMPS, forbid_dumps)
    layers.attempt(CAPABILITIES, syscalls.drop_capabilities)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    readable, writable = _paths(job)
    readable += access.readable
    layers.attempt(
        IsolationLayer.LANDLOCK, lambda: filters.restrict_paths(readable, writable, tcp=access.tcp)
    )
    layers.attempt(IsolationLayer.SECCOMP, lambda: filters.refuse_calls(gpu=gpu))
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)


def _paths(job: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths that Landlock lets a process read, and write; fewer if it has no own root."""
    if job == view.JOB:
        return ("/",), (*view.SCRATCH, "/dev", "/proc")
    shown = (*view.SYSTEM, *view.interpreter())
    return (*chain.from_iterable(map(view.around_hidden, shown)), "/sys"), (job, "/dev", "/proc")


def set_limits(limits: Limits, *, gpu: bool) -> None:
    """Limit what this process may use.

    The limit on memory is in addition to what the process already uses.
    """
    values = {
        resource.RLIMIT_FSIZE: limits.disk,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_SIGPENDING: _SIGNALS,
    }
    if not gpu:  # CUDA reserves far more than it uses; the watchdog checks usage
        values[resource.RLIMIT_DATA] = process_limits.data_bytes() + limits.memory
        values[resource.RLIMIT_MEMLOCK] = _LOCKED_BYTES
    lower_limits(values)


def forbid_dumps() -> None:
    """Keep crashes of this process and its children from starting a program of the system.

    OSError if the limit cannot be set and this system passes core dumps to a program.
    """
    lower_limits({resource.RLIMIT_CORE: _NO_DUMP})
    try:
        pattern = _CORE_PATTERN.read_text()
    except OSError:
        return  # the system has no handlers
    if pattern.startswith("@"):
        raise OSError("Linux passes core dumps to a socket, whatever their limit is")
    if pattern.startswith("|") and resource.getrlimit(resource.RLIMIT_CORE) != (1, 1):
        raise OSError("Linux passes core dumps to a program; their hard limit must not be 0")


def lower_limits(values: Mapping[int, int]) -> None:
    """Set soft and hard limits of this process; a hard limit that is already lower stays."""
    for name, value in values.items():
        hard = resource.getrlimit(name)[1]
        cap = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (cap, cap))
