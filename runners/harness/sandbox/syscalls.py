"""System calls that are not in Python's standard library; they raise OSError."""

import ctypes
import fcntl
import os
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runners.harness.sandbox.process_limits import data_bytes

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.malloc.restype = ctypes.c_void_p

MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 0x1, 0x2

CLONE_NEWNS = 0x20000
CLONE_NEWUTS = 0x4000000
CLONE_NEWIPC = 0x8000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_PERTURB = -1, -3, -6
_INT_MAX = (1 << 31) - 1

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_SETATTR = 442  # like all newer calls, it has the same number on every architecture
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION = 1
_LANDLOCK_PATH_BENEATH = 1
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _NEW_LISTENER = 1, 8
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPABILITY_VERSION_3 = 0x20080522
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
_HUGE_PAGE = 2 << 20
_COLLAPSE = 25
"""`MADV_COLLAPSE`; Linux before 6.1 refuses it, and nothing changes."""


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


class _Span(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]  # type: ignore[mutable-override]


def read_memory(pid: int, there: int, here: int, size: int) -> tuple[int, int]:
    """Copy memory of a process; return how many bytes, below 0 if it failed, and `errno`."""
    own, other = (ctypes.byref(_Span(address, size)) for address in (here, there))
    return _LIBC.process_vm_readv(pid, own, 1, other, 1, 0), ctypes.get_errno()


def prctl(option: int, first: int = 0, second: int = 0) -> None:
    """Change an attribute of this process."""
    arguments = (ctypes.c_ulong(first), ctypes.c_ulong(second), ctypes.c_ulong(0))
    _checked(_LIBC.prctl(option, *arguments, ctypes.c_ulong(0)), f"prctl {option}")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that it can be waited for."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def start_session() -> None:
    """Leave this process's session: any process of one may lower the CPU share of all of it.

    A task's own code could otherwise do so for later judges (`/proc/*/autogroup`).
    """
    with suppress(PermissionError):  # it is the first process of its session
        os.setsid()


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _checked(_LIBC.unshare(flags), "unshare")


def raise_loopback() -> None:
    """Bring up the loopback interface of this process's network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def mount(kind: str, target: str, flags: int, options: str = "") -> None:
    """Mount a new file system of type `kind`."""
    arguments = (kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags))
    _checked(_LIBC.mount(*arguments, options.encode() or None), f"mount {target}")


def bind(source: str, target: str, flags: int = 0) -> None:
    """Bind-mount a file or folder at another place."""
    arguments = (source.encode(), target.encode(), None, ctypes.c_ulong(MS_BIND | flags))
    _checked(_LIBC.mount(*arguments, None), f"bind {target}")


def make_private() -> None:
    """Make all mounts private: later mounts are not visible in other mount namespaces."""
    arguments = (b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None)
    _checked(_LIBC.mount(*arguments), "make / private")


def set_mount_attributes(target: str, attributes: int, *, recursive: bool) -> None:
    """Add attributes to the mount at `target`; if `recursive`, also to those below it."""
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    arguments = (_AT_FDCWD, target.encode(), flags, request, ctypes.c_size_t(len(request)))
    _checked(_LIBC.syscall(_MOUNT_SETATTR, *arguments), f"mount_setattr {target}")


def enter_root(folder: str) -> None:
    """Make the mount at `folder` the root of this mount namespace and unmount the old root."""
    os.chdir(folder)
    _checked(_LIBC.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
    _checked(_LIBC.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up every capability, for this process and for programs that it executes."""
    last = int(_read("/proc/sys/kernel/cap_last_cap") or 40)
    for capability in range(last + 1):
        _LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)
    _LIBC.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), 0, 0, 0)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_LIBC.capset(header, bytes(24)), "capset")


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def install_filter(program: bytes) -> None:
    """Install a seccomp program of 8-byte BPF instructions for this process and its descendants."""
    code = ctypes.create_string_buffer(program, len(program))
    holder = _filter(code)
    result = _LIBC.prctl(
        PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(holder), 0, 0
    )
    _checked(result, "seccomp")


def install_filter_with_listener(program: bytes) -> int:
    """Install such a program; return a descriptor that reports the calls which it names."""
    code = ctypes.create_string_buffer(program, len(program))
    holder = _filter(code)
    number = _SECCOMP[os.uname().machine]
    flags = ctypes.c_ulong(_NEW_LISTENER)
    result = _LIBC.syscall(number, ctypes.c_ulong(_SET_FILTER), flags, ctypes.byref(holder))
    return _checked(result, "seccomp")


def _filter(code: "ctypes.Array[ctypes.c_char]") -> "ctypes.Array[ctypes.c_char]":
    header = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(code))
    return ctypes.create_string_buffer(header, len(header))


def landlock_version() -> int:
    """The Linux kernel's Landlock ABI version; OSError if it has none."""
    result = _LIBC.syscall(
        _LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_LANDLOCK_VERSION)
    )
    return _checked(result, "Landlock")


def landlock_ruleset(attributes: bytes) -> int:
    """A descriptor of a new set of Landlock rules."""
    arguments = (attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint(0))
    return _checked(_LIBC.syscall(_LANDLOCK_CREATE_RULESET, *arguments), "Landlock ruleset")


def landlock_allow(ruleset: int, access: int, beneath: int) -> None:
    """Allow the access rights on all files in an open folder, or on an open file."""
    rule = struct.pack("=Qi", access, beneath)
    arguments = (ruleset, _LANDLOCK_PATH_BENEATH, rule, ctypes.c_uint(0))
    _checked(_LIBC.syscall(_LANDLOCK_ADD_RULE, *arguments), "Landlock rule")


def landlock_enforce(ruleset: int) -> None:
    """Enforce the rules for this process and its descendants."""
    result = _LIBC.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, ctypes.c_uint(0))
    _checked(result, "Landlock enforcement")


def use_huge_pages(within_s: float) -> None:
    """Move what this process has allocated to huge pages, as far as the system can.

    Page tables take most of the time of a fork, and of the forked process's exit. It stops after
    `within_s` seconds, because Linux may have to move much memory for a huge page.
    """
    end = time.monotonic() + within_s
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        addresses, rights, _, _, _, *name = line.split(maxsplit=5)
        if rights != "rw-p" or name not in ([], ["[heap]"]):
            continue
        begin, last = (int(each, 16) for each in addresses.split("-"))
        first = -(-begin // _HUGE_PAGE) * _HUGE_PAGE
        for page in range(first, last - _HUGE_PAGE + 1, _HUGE_PAGE):
            if time.monotonic() > end:
                return
            _LIBC.madvise(ctypes.c_void_p(page), ctypes.c_size_t(_HUGE_PAGE), _COLLAPSE)


def keep_freed_memory(most: int = 1 << 30, ready: int = 0) -> None:
    """Make this process reuse memory that it frees, in blocks of at most `most` bytes.

    Reused memory costs no page faults. The first `ready` bytes that it allocates cost none either.
    """
    most = min(most, 1 << 30)
    _LIBC.mallopt(_M_TRIM_THRESHOLD, _INT_MAX)
    for threshold in (32 << 20, most):  # glibc before 2.35 refuses the second one
        _LIBC.mallopt(_M_MMAP_THRESHOLD, min(threshold, most))
    ready = min(ready, most // 2)  # a block of `most` would not be kept
    if block := _LIBC.malloc(ctypes.c_size_t(ready)):
        _LIBC.free(ctypes.c_void_p(ctypes.memset(block, 1, ready)))


@contextmanager
def large_blocks_returned() -> Iterator[None]:
    """Let the C library return large blocks that the block of code frees, and keep later ones.

    Freed memory within its heap stays mapped, and no limit would count its reuse.
    """
    _LIBC.mallopt(_M_MMAP_THRESHOLD, 1 << 20)
    try:
        yield
    finally:
        keep_freed_memory()
        _LIBC.malloc_trim(ctypes.c_size_t(0))


@contextmanager
def new_memory_filled(byte: int) -> Iterator[None]:
    """Let the C library fill what it allocates in this block with a byte (M_PERTURB)."""
    _LIBC.mallopt(_M_PERTURB, byte ^ 0xFF)  # new memory gets the complement of this byte
    try:
        yield
    finally:
        _LIBC.mallopt(_M_PERTURB, 0)


@contextmanager
def memory_limited(more: int) -> Iterator[None]:
    """Limit this process, in this block, to `more` bytes beyond what it uses now.

    A larger allocation fails with RuntimeError in torch, and with MemoryError elsewhere.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = data_bytes() + more
    finite = [each for each in (most, *before) if each != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(finite), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def lift_memory_limit() -> None:
    """Lift the limit on memory for the rest of the present block of `memory_limited`."""
    most = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
