"""Bounds how many locks on files the processes of a sandbox hold, and its netlink sockets.

Whenever a process closes a file, Linux walks all locks on it, and it has no limit on them. One
process can set millions, and then the exits of processes that have the file open take minutes. The
sandbox's filter therefore reports each call that may add a lock. The template, outside the sandbox,
lets the call continue, or refuses it with ENOLCK (see seccomp_unotify(2)).

Only calls are counted, because a process can change its arguments after they were read. When the
count is at the limit, it is corrected by the locks that Linux lists. Linux lists the locks of open
files without a process, so those of all sandboxes count then, but never more than the calls. It
does not list shared locks whose process has ended, so their calls count until the sandbox ends.

Whenever a netlink socket that is in a group is closed, Linux walks all sockets of all groups. The
calls that make netlink sockets are therefore counted too.
"""

import errno
import fcntl
import os
import select
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST = 512
"""The most locks of one sandbox."""
SOCKETS_MOST = 4096
"""The most netlink sockets that a sandbox makes; to list interfaces takes one each time."""
_ADDED_BY_RECORD, _ADDED_BY_SHARED = 2, 1
"""The most locks that one call adds: it can split a lock on a part of a file into three."""
_F_SETLK, _F_SETLKW = 6, 7
_FCNTL, _SOCKET = (72, 25), (41, 198)
_NOTIFICATION, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_START = 19
"""The index of a process's start in its `stat`, after its name."""
_LIST = Path("/proc/locks")
_NO_PROCESS = -1
"""The process id in the list of a lock that belongs to an open file."""


@dataclass(slots=True)
class _ProcessLocks:
    """The most locks that a process may hold: on parts of files, and shared ones."""

    records: int = 0
    shared: int = 0


class SandboxLocks:
    """The locks of one sandbox."""

    def __init__(self) -> None:
        self.processes: dict[tuple[int, int], _ProcessLocks] = {}
        """Process id and start -> what the process may hold."""
        self.of_open_files = 0
        """The most locks that belong to an open file, not to a process."""
        self.unlisted = 0
        """The most locks that may exist although Linux does not list them."""
        self.sockets = 0
        """How many netlink sockets its processes have asked for."""

    def admit_socket(self) -> bool:
        """Count a call that makes a netlink socket; return whether it is within the limit."""
        self.sockets += 1
        return self.sockets <= SOCKETS_MOST

    def admit(self, thread: int, *, record: bool, of_open_file: bool) -> bool:
        """Count a call of a thread; return whether its locks are within the limit."""
        added = _ADDED_BY_RECORD if record else _ADDED_BY_SHARED
        if self._count() + added > MOST:
            self._correct()
        if self._count() + added > MOST:
            return False
        if of_open_file:
            self.of_open_files += added
            return True
        if (process := _process_of(thread)) is None:
            self.unlisted += added
            return True
        held = self.processes.setdefault(process, _ProcessLocks())
        held.records += added * record
        held.shared += added * (not record)
        return True

    def _count(self) -> int:
        by_process = sum(each.records + each.shared for each in self.processes.values())
        return self.unlisted + self.of_open_files + by_process

    def _correct(self) -> None:
        """Replace the counts of calls by those of existing locks.

        Linux drops the locks on parts of files when a process ends, but not shared ones.
        """
        for ended in [each for each in self.processes if _start_of(each[0]) != each[1]]:
            self.unlisted += self.processes.pop(ended).shared
        try:
            words = [line.split() for line in _LIST.read_text().splitlines()]
        except OSError:
            return
        found = Counter((each[1], int(each[4])) for each in words if each[1] != "->")
        for (process, _), held in self.processes.items():
            held.records, held.shared = found["POSIX", process], found["FLOCK", process]
        self.of_open_files = min(self.of_open_files, found["OFDLCK", _NO_PROCESS])


def _process_of(thread: int) -> tuple[int, int] | None:
    """Return the id and the start of a thread's process; None if it has just ended."""
    try:
        status = Path(f"/proc/{thread}/status").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    process = int(status.split(b"\nTgid:", 1)[1].split(None, 1)[0])
    start = _start_of(process)
    return None if start is None else (process, start)


def _start_of(process: int) -> int | None:
    """Return when a process started, in ticks since the machine's start; None if it has ended."""
    try:
        words = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(words[_START])


class LockServer:
    """Answers the reports of the sandboxes that are started by forks of this process."""

    def __init__(self) -> None:
        global _link
        self.inbox, _link = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sandboxes: dict[int, SandboxLocks] = {}

    def fds(self) -> tuple[int, ...]:
        """The descriptors that `answer` reads."""
        return self.inbox.fileno(), *self.sandboxes

    def answer(self, ready: Mapping[int, int]) -> None:
        """Handle the events of ready descriptors."""
        for fd in ready.keys() & self.fds():
            self._answer(fd, ready[fd])

    def _answer(self, fd: int, events: int) -> None:
        """Accept a sandbox, answer a report, or drop a sandbox that has ended."""
        if fd == self.inbox.fileno():
            for listener in socket.recv_fds(self.inbox, 1, 1)[1]:
                os.set_inheritable(listener, False)  # noqa: FBT003 - the library's own signature
                self.sandboxes[listener] = SandboxLocks()
        elif events & select.POLLIN:
            with suppress(FileNotFoundError):  # the caller has just ended, or a signal came
                _answer_report(fd, self.sandboxes[fd])
        else:
            del self.sandboxes[fd]
            os.close(fd)

    def close(self) -> None:
        """Stop answering: from now on, calls that would be reported fail with ENOSYS."""
        hand_over(None)
        self.close_in_fork()

    def close_in_fork(self) -> None:
        """Close what only the server uses, in a fork of it that becomes a sandbox."""
        for fd in self.sandboxes:
            os.close(fd)
        self.sandboxes.clear()
        self.inbox.close()


def _answer_report(listener: int, locks: SandboxLocks) -> None:
    report = bytearray(_NOTIFICATION.size)
    fcntl.ioctl(listener, _RECEIVE, report, True)  # noqa: FBT003 - the library's own signature
    identity, thread, _, call, _, _, _, command, *_ = _NOTIFICATION.unpack(report)
    if call in _SOCKET:
        allowed, refusal, without = locks.admit_socket(), -errno.ENOBUFS, -errno.EAFNOSUPPORT
    else:
        record = call in _FCNTL
        of_open_file = record and command not in (_F_SETLK, _F_SETLKW)
        allowed = locks.admit(thread, record=record, of_open_file=of_open_file)
        refusal, without = -errno.ENOLCK, 0
    try:
        error, flags = (0, _CONTINUE) if allowed else (refusal, 0)
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(identity, 0, error, flags))
    except OSError as refused:
        if refused.errno != errno.EINVAL:
            raise
        # Linux before 5.5 cannot continue a call: a lock succeeds without effect, a socket fails.
        fcntl.ioctl(listener, _SEND, _ANSWER.pack(identity, 0, without, 0))


_link: socket.socket | None = None
"""The sandbox's end of the link to the server; None if this process has no server."""


def kept_fds() -> frozenset[int]:
    """The descriptors that must stay open until `hand_over`."""
    return frozenset() if _link is None else frozenset({_link.fileno()})


def has_server() -> bool:
    """Whether this process was forked by one with a lock server."""
    return _link is not None


def hand_over(listener: int | None) -> None:
    """Send the filter's listener to the server, and close both here, before submitted code runs."""
    global _link
    link, _link = _link, None
    if link is None:
        return
    if listener is not None:
        with suppress(OSError):  # the server is gone; then Linux refuses the calls
            socket.send_fds(link, [b"l"], [listener])
        os.close(listener)
    link.close()
