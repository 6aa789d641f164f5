"""Filters that restrict a process: Landlock for paths and signals, seccomp for system calls.

Landlock allows reading and writing only some paths, and forbids signals to processes outside the
sandbox. The seccomp program refuses system calls that no GPU kernel needs.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterable
from contextlib import suppress

from runners.harness.sandbox import locks, syscalls

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15}
_TCP_BIND_AND_CONNECT = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


def landlock_attributes(version: int, *, tcp: bool = False) -> bytes:
    """The attributes of a ruleset with every restriction that this Landlock version supports.

    All versions restrict file access, from 4 on also TCP, from 6 on also signals and abstract
    sockets. With `tcp`, TCP is not restricted; processes with their own loopback interface need it.
    """
    rights = (1 << _BITS_BY_VERSION.get(version, 16)) - 1
    fields = [rights]
    if version >= 4:
        fields.append(0 if tcp else _TCP_BIND_AND_CONNECT)
    if version >= 6:
        fields.append(_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS)
    return struct.pack(f"={len(fields)}Q", *fields)


def restrict_paths(readable: Iterable[str], writable: Iterable[str], *, tcp: bool = False) -> int:
    """Allow only these paths from now on; returns the Landlock version. Needs no_new_privs."""
    version = syscalls.landlock_version()
    handled = landlock_attributes(version, tcp=tcp)
    rights = int.from_bytes(handled[:8], "little")
    ruleset = syscalls.landlock_ruleset(handled)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & rights)
        for path in writable:
            _allow(ruleset, path, rights)
        syscalls.landlock_enforce(ruleset)
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a path that cannot be opened needs no rule
    try:
        folder = stat.S_ISDIR(os.fstat(beneath).st_mode)
        syscalls.landlock_allow(ruleset, rights if folder else rights & _ON_FILES, beneath)
    finally:
        os.close(beneath)


# name: (x86_64, aarch64); None where the architecture has no such call
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fadvise64": (221, 223),  # it evicts files that every slot of the machine reads
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "io_submit": (209, 2),  # no signal ends it, and a call may be for thousands of reads
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),  # its rules are memory that no watchdog counts
    "landlock_restrict_self": (446, 446),
    "mbind": (237, 235),  # its records of a file's pages are memory that no watchdog counts
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),  # no signal ends it, and a call may be for billions of pages
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "seccomp": (317, 277),  # as PR_SET_SECCOMP
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "timer_create": (222, 107),  # its signal may be SIGCONT, which resumes a frozen process
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),  # a pipe would hold whole huge pages that no process has mapped
}
_ANSWERED: dict[str, tuple[int, int, int]] = {
    "clone3": (435, 435, errno.ENOSYS),  # glibc then uses clone, with visible flags
    "fsetxattr": (190, 7, errno.EOPNOTSUPP),
    "lsetxattr": (189, 6, errno.EOPNOTSUPP),
    "sched_setattr": (314, 274, 0),
    "sched_setscheduler": (144, 119, 0),
    "setpriority": (141, 140, 0),
    "setxattr": (188, 5, errno.EOPNOTSUPP),
    "setxattrat": (463, 463, errno.EOPNOTSUPP),
}
"""Calls without effect, and the errors that they return; with 0 they succeed. Access lists of files
in memory would be counted by no limit. An idle process takes minutes to exit on busy cores."""
_CLONE, _FCNTL, _FLOCK, _IOCTL = (56, 220), (72, 25), (73, 32), (16, 29)
_MADVISE, _MEMFD_CREATE = (28, 233), (319, 279)
_MINCORE = (27, 232)  # no signal ends it, and for 4 GiB or more it could take hours
_PRCTL, _PRLIMIT, _SETRLIMIT = (157, 167), (302, 261), (160, 164)
_SETSOCKOPT, _SOCKET = (54, 208), (41, 198)

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020000
_CLONE_PARENT, _CLONE_FILES, _CLONE_THREAD = 0x8000, 0x400, 0x10000
_F_SETFL, _F_SETSIG, _F_SETLEASE, _F_NOTIFY, _F_SET_RW_HINT = 4, 10, 1024, 1026, 1036
_O_ASYNC = 0x2000
_NOT_EXCLUSIVE = 0xFFFFFFF1
"""All bits except LOCK_EX, LOCK_UN and LOCK_NB: with one of these, `flock` sets a shared lock.
A file can have any number of shared locks."""
_F_SETLK, _F_SETLKW, _F_OFD_SETLK, _F_OFD_SETLKW = 6, 7, 37, 38
_UDP, _SOL_SOCKET, _SO_SNDBUF, _SO_RCVBUF = 17, 1, 7, 8
_SO_ATTACH_FILTER, _SO_ATTACH_REUSEPORT_CBPF = 26, 51
_REQUESTS = (0x5412, 0x541C, 0x5452, 0x8940, 0x8941, 0x8982, 0x8983, 0x89A0, 0x89A1)
"""TIOCSTI, TIOCLINUX, FIOASYNC, and those for which Linux loads modules of bridges and VLANs."""
_PR_SET_MM, _PR_SCHED_CORE, _PR_FUTEX_HASH, _PR_SET_VMA = 35, 62, 78, 0x53564D41
_RLIMIT_CORE = 4
_MADV_PAGEOUT = 21  # it would move memory to the swap space, where no watchdog counts shared memory
_FAMILIES, _NETLINK = (1, 2, 10, 16), 16
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK; others, like AF_VSOCK, may ignore network namespaces."""

_LOAD, _IF_EQUAL, _IF_ANY_BIT, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_ALLOW, _KILL, _ERRNO, _REPORT = 0x7FFF0000, 0x80000000, 0x50000, 0x7FC00000
_NUMBER, _ARCH, _ARGUMENT = 0, 4, 16

Instruction = tuple[int, int, int, int]


def _refuse(number: int, code: int) -> list[Instruction]:
    return [(_IF_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | code)]


def _refuse_from(least: int, code: int) -> list[Instruction]:
    return [(_IF_AT_LEAST, 0, 1, least), (_RETURN, 0, 0, _ERRNO | code)]


def _on_argument(
    number: int, argument: int, test: list[Instruction], half: int = 0
) -> list[Instruction]:
    """Run `test` on one argument of one call; if the test does not return, the call is allowed.

    The test sees the lower four bytes of the argument, or with `half` 1 the upper ones.
    """
    place = _ARGUMENT + 8 * argument + 4 * half
    body = [(_LOAD, 0, 0, place), *test, (_RETURN, 0, 0, _ALLOW)]
    return [(_IF_EQUAL, 0, len(body), number), *body]


def _refuse_namespaces_and_siblings() -> list[Instruction]:
    """Also refuse processes that share descriptors: locks would outlive the one that set them."""
    refused = _NEW_NAMESPACES | _CLONE_PARENT  # a sibling is not among a candidate's descendants
    return [
        (_IF_ANY_BIT, 2, 0, refused),
        (_IF_ANY_BIT, 0, 2, _CLONE_FILES),
        (_IF_ANY_BIT, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
    ]


def _refuse_other_families(netlink: int) -> list[Instruction]:
    """Also refuse protocols for which Linux may load a module: those after UDP, such as SCTP's.

    The answer to the only protocol of netlink by which programs list interfaces is `netlink`.
    """
    last, protocol = len(_FAMILIES), (_LOAD, 0, 0, _ARGUMENT + 8 * 2)
    tests = [(_IF_EQUAL, last - index, 0, family) for index, family in enumerate(_FAMILIES)]
    tests += [(_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_IF_EQUAL, 0, 4, _NETLINK)]
    tests += [protocol, *_refuse_from(1, errno.EPROTONOSUPPORT), (_RETURN, 0, 0, netlink)]
    return [*tests, protocol, *_refuse_from(_UDP + 1, errno.EPROTONOSUPPORT)]


def _restrict_socket_options(number: int) -> list[Instruction]:
    """Refuse socket filters; calls that set the size of socket buffers succeed without effect.

    Linux limits the code of all compiled filters on the machine together. If sockets take all of
    it, no other sandbox can install its system call filter. The memory watchdog does not count the
    pages of buffers, which no process has mapped.
    """
    test = [
        (_IF_EQUAL, 0, 9, _SOL_SOCKET),
        (_LOAD, 0, 0, _ARGUMENT + 8 * 2),
        *_refuse(_SO_ATTACH_FILTER, errno.EPERM),
        *_refuse(_SO_ATTACH_REUSEPORT_CBPF, errno.EPERM),
        *_refuse(_SO_SNDBUF, 0),
        *_refuse(_SO_RCVBUF, 0),
    ]
    return _on_argument(number, 1, test)


def _restrict_descriptors(lock: int) -> list[Instruction]:
    """Refuse leases, signals and hints by `fcntl`; answer `lock` to locks on parts of files.

    A process that opens a leased file, such as another slot that starts, waits for up to 45 s.
    For each close Linux walks the list of those who wait for signals about that folder or device.
    An old Linux keeps hints of anyone about any file; a later candidate could read them as numbers.
    """
    refused = (_F_SETSIG, _F_SETLEASE, _F_NOTIFY, _F_SET_RW_HINT)
    answers = [step for each in refused for step in _refuse(each, errno.EPERM)]
    for each in (_F_SETLK, _F_SETLKW, _F_OFD_SETLK, _F_OFD_SETLKW):
        answers += [(_IF_EQUAL, 0, 1, each), (_RETURN, 0, 0, lock)]
    flags, refusal = (_LOAD, 0, 0, _ARGUMENT + 8 * 2), (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    return [*answers, (_IF_EQUAL, 0, 3, _F_SETFL), flags, (_IF_ANY_BIT, 0, 1, _O_ASYNC), refusal]


def _restrict_limits() -> list[Instruction]:
    """Refuse `prlimit` for other processes; ignore new limits of core dumps (see `isolate`)."""
    return [
        (_IF_EQUAL, 1, 0, 0),  # the caller itself
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_LOAD, 0, 0, _ARGUMENT + 8 * 1),
        (_IF_EQUAL, 0, 5, _RLIMIT_CORE),
        (_LOAD, 0, 0, _ARGUMENT + 8 * 2),
        (_IF_EQUAL, 0, 2, 0),
        (_LOAD, 0, 0, _ARGUMENT + 8 * 2 + 4),
        (_IF_EQUAL, 1, 0, 0),  # without new limits, the call only reads the present ones
        (_RETURN, 0, 0, _ERRNO),
    ]


def _refuse_options() -> list[Instruction]:
    """Refuse options of `prctl`; those of new Linux kernels with EINVAL, as an old one does.

    PR_SCHED_CORE keeps other processes off the hyperthread next to a candidate. PR_FUTEX_HASH makes
    Linux allocate as much memory as the caller asks for, which no process has mapped. PR_SET_VMA
    hides shared memory under another name, PR_SET_MM that a process has executed another program.
    With PR_SET_SECCOMP Linux compiles a filter (see `_restrict_socket_options`).
    """
    old = (syscalls.PR_SET_CHILD_SUBREAPER, syscalls.PR_SET_SECCOMP, _PR_SET_MM)
    new = (_PR_SCHED_CORE, _PR_FUTEX_HASH, _PR_SET_VMA)
    refused = [step for each in old for step in _refuse(each, errno.EPERM)]
    return refused + [step for each in new for step in _refuse(each, errno.EINVAL)]


def seccomp_instructions(
    machine: str, *, gpu: bool, counts_locks: bool = False
) -> list[Instruction]:
    """The filter for an architecture; OSError for one without a table.

    If `counts_locks`, new locks and netlink sockets are reported; else locks have no effect.
    Without a GPU, memory files are refused too, because no process is charged for their pages.
    """
    if machine not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    column = list(_AUDIT_ARCH).index(machine)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH),
        (_IF_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        program += [(_IF_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _KILL)]
    for number in (numbers[column] for numbers in _REFUSED.values()):
        program += [] if number is None else _refuse(number, errno.EPERM)
    for *answered, error in _ANSWERED.values():
        program += _refuse(answered[column], error)
    if not gpu:
        program += _refuse(_MEMFD_CREATE[column], errno.ENOSYS)
    program += _on_argument(_CLONE[column], 0, _refuse_namespaces_and_siblings())
    program += _on_argument(_PRCTL[column], 0, _refuse_options())
    program += _on_argument(_PRLIMIT[column], 0, _restrict_limits())
    program += _on_argument(_SETRLIMIT[column], 0, _refuse(_RLIMIT_CORE, 0))
    lock, netlink = (_REPORT, _REPORT) if counts_locks else (_ERRNO, _ALLOW)
    program += _on_argument(_FCNTL[column], 1, _restrict_descriptors(lock))
    shared = [(_IF_ANY_BIT, 0, 1, _NOT_EXCLUSIVE), (_RETURN, 0, 0, lock)]
    program += _on_argument(_FLOCK[column], 1, shared)
    program += _on_argument(_SOCKET[column], 0, _refuse_other_families(netlink))
    program += _restrict_socket_options(_SETSOCKOPT[column])
    program += _on_argument(_MINCORE[column], 1, _refuse_from(1, errno.EPERM), half=1)
    program += _on_argument(_MADVISE[column], 2, _refuse(_MADV_PAGEOUT, 0))
    refused = [step for each in _REQUESTS for step in _refuse(each, errno.EPERM)]
    program += _on_argument(_IOCTL[column], 1, refused)
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def refuse_calls(*, gpu: bool) -> None:
    """Filter this process and its descendants from now on; needs no_new_privs."""
    machine, listener = os.uname().machine, None
    if locks.has_server():
        with suppress(OSError):  # an old Linux, or another listener is there
            program = seccomp_instructions(machine, gpu=gpu, counts_locks=True)
            listener = syscalls.install_filter_with_listener(_packed(program))
    try:
        if listener is None:
            syscalls.install_filter(_packed(seccomp_instructions(machine, gpu=gpu)))
    finally:
        locks.hand_over(listener)


def _packed(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("=HBBI", *each) for each in program)
