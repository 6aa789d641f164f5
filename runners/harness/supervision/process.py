"""A candidate's process: the judge freezes it, reads its memory, and kills it."""

import ctypes
import errno
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import torch

from runners.harness.protocol.arena import apart
from runners.harness.protocol.values import DTYPES, TensorNode
from runners.harness.sandbox.charged_memory import MAPS_MOST
from runners.harness.sandbox.process_limits import kill_tree
from runners.harness.sandbox.syscalls import read_memory
from runners.harness.verdicts import too_much_printed
from runners.process_tree import (
    cpu_ns,
    descendants,
    image_of,
    listed_beneath,
    newest_process,
    stop_threads,
    thread_states,
)

_EVENTS, _STOPPED = os.WSTOPPED | os.WCONTINUED, frozenset("TtZX")
PIECE = 64 << 20
"""The bytes of an output that are copied between two checks of the deadline."""
STOP_S = 2.0
"""Seconds for a process to freeze, and for its descendants after it; system calls delay that."""
_QUICK_S = 5e-3
"""Seconds in which the judge waits for a stop without sleeping."""
RESTING_NS = 50_000
"""The most CPU time in ns that a frozen process and its descendants may use together. On a busy
machine, a thread that was interrupted while it stopped needs some CPU time to finish stopping."""


class ProcessGoneError(Exception):
    """The process ended; `status` is what `os.waitstatus_to_exitcode` returns for it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process ended with {status}")
        self.status = status


class CandidateRanError(Exception):
    """The process, or one that it started, ran while it should have been frozen."""


class UnreadableError(Exception):
    """The candidate described an output that cannot be read from its memory."""


class CandidateProcess:
    """One process and its descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self._image = image_of(pid)
        self.frozen = False
        self.may_run = False
        """Whether it may run between requests, because no submitted code is in it."""
        self.descendants: tuple[int, ...] = ()
        """The descendants at the last freeze."""
        self.halted: set[int] = set()
        """The processes that the last freeze stopped; others had stopped by themselves."""
        self.stopped: frozenset[int] = frozenset()
        """The processes that were stopped, not exiting, when all were frozen."""
        self.used_at: dict[int, int] = {}
        """Process id -> CPU time in ns when it was frozen or last checked."""
        self.newest = 0
        """The newest process of all when this one was last verified."""
        self.ran_while_frozen = 0
        """How many checks found that more CPU time than `RESTING_NS` was used while frozen."""
        self.killed = False

    def freeze(self) -> int:
        """Stop every thread of the process and of its descendants, and wait until they are stopped.

        Return the time of `time.perf_counter_ns` at which the last one was seen stopped, or at
        which all must have ended what they did, if that is earlier. Raise CandidateRanError if they
        do not stop. A process that `may_run` is not stopped.
        """
        if self.frozen or self.may_run:
            return time.perf_counter_ns()
        known, self.halted = self.halted.intersection(self.descendants), set()
        since = self.used_at | {self.pid: self.cpu_ns()}
        begin = time.perf_counter_ns()
        stop_threads(self.pid)
        self._await_stop()
        end = time.perf_counter_ns()
        self._halt(known)
        self.descendants, self.stopped = (), frozenset()
        self.used_at = {self.pid: cpu_ns(self.pid)}
        if known or listed_beneath(self.pid) or listed_beneath(self.pid):  # one may lack it
            end = self._stop_all()
        self.frozen = True
        return min(end, begin + self._computed_since(since))

    def _await_stop(self) -> None:
        # There is a deadline because a thread inside vfork cannot be stopped.
        begin = time.monotonic()
        while not self._event(os.WSTOPPED):
            waited = time.monotonic() - begin
            if waited < _QUICK_S:
                os.sched_yield()
                continue
            if waited > STOP_S:
                raise CandidateRanError("a thread did not stop")
            self._halt((self.pid, *descendants(self.pid)))  # one of them may resume another
            select.select([], [], [], 1e-3)

    def _halt(self, pids: Iterable[int]) -> None:
        """Stop those that have not stopped by themselves."""
        for pid in pids:
            if set(thread_states(pid).values()) - _STOPPED:
                stop_threads(pid)
                self.halted.add(pid)

    def _event(self, events: int) -> bool:
        """Whether the process was stopped or resumed since the last call.

        The Linux kernel reports each of these events once. After a stop, it reports another event
        only if something other than the judge resumed the process.
        """
        self.check()
        try:
            return os.waitid(os.P_PIDFD, self.pidfd, events | os.WNOHANG) is not None
        except ChildProcessError:
            return False  # the process has just exited, which the next check reports

    def _stop_all(self) -> int:
        """Stop the descendants too; return when all were stopped.

        While the states are read one by one, a process can start or resume another and then stop.
        So all must be stopped twice in a row, with the same list and the same CPU times.
        """
        begin, end, seen = time.monotonic(), 0, dict[int, int]()
        while time.monotonic() - begin < STOP_S:
            family = (self.pid, *listed_beneath(self.pid))
            states = {pid: set(thread_states(pid).values()) for pid in family}
            at = time.perf_counter_ns()
            running = [pid for pid, found in states.items() if found - _STOPPED]
            used = {pid: cpu_ns(pid) for pid in family}
            if running or self._event(_EVENTS):  # a descendant may have resumed it
                used = {}
            elif used == seen:
                self.stopped = frozenset(pid for pid, found in states.items() if found & set("Tt"))
                self.descendants = tuple(pid for pid in family[1:] if states[pid] - set("ZX"))
                self.used_at = used
                return end
            seen, end = used, at
            self._halt(running)
            if running:
                select.select([], [], [], 50e-6)
        raise CandidateRanError("a process that it started did not stop")

    def _computed_since(self, since: dict[int, int]) -> int:
        """Return for how many ns it and its descendants can have computed while they were stopped.

        That is at most the CPU time of each beyond `since`. It is unlimited if a process or thread
        has begun since they were verified, or one is gone, whose CPU time is then unknown. It is
        also unlimited in gVisor, which reports no newest process and counts CPU time coarsely.
        """
        more = {pid: self.used_at.get(pid, -1) - used for pid, used in since.items()}
        same = more.keys() == self.used_at.keys() and 0 < self.newest == newest_process()
        return sum(more.values()) if same and min(more.values()) >= 0 else sys.maxsize

    def verify_frozen(self) -> None:
        """Raise CandidateRanError if a process was resumed, started or ended since the freeze.

        A stop can be undone from inside, by a timer whose signal is SIGCONT or by a child. The
        kernel reports no events of descendants, because they are not the judge's children. A
        descendant ran if it has ended, because a stopped process cannot exit, or if it used CPU
        time. On a busy machine a stopped one can also use some, so that is only counted, in
        `ran_while_frozen`.
        """
        if not self.frozen:
            return
        newest = newest_process()
        begun = not 0 < self.newest == newest  # reading the list takes much longer
        started = set(descendants(self.pid) if begun else ()) - self.used_at.keys()
        used = {pid: cpu_ns(pid) for pid in self.used_at}
        ended = any(used[pid] < self.used_at[pid] for pid in self.stopped)
        if self._event(_EVENTS) or started or ended:
            raise CandidateRanError("it ran while it was frozen")
        more = sum(max(0, used[pid] - before) for pid, before in self.used_at.items())
        self.ran_while_frozen += more > RESTING_NS
        self.used_at, self.newest = used, newest

    def cpu_ns(self) -> int:
        """Return the CPU time of all threads of the process, as the Linux kernel counts it."""
        return cpu_ns(self.pid)

    def has_replaced_itself(self) -> bool:
        """Whether its program or first stack lie elsewhere than at the start (execve)."""
        return image_of(self.pid) not in {self._image, ()}

    def resume(self) -> None:
        """Resume all that was frozen; CandidateRanError if any of it ran meanwhile."""
        self.verify_frozen()
        self.let_run()

    def let_run(self) -> None:
        """Resume the process and its descendants, except those that had stopped by themselves."""
        if not self.frozen:
            return
        self.frozen = False
        signal.pidfd_send_signal(self.pidfd, signal.SIGCONT)
        for pid in self.halted.intersection(self.descendants):
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                continue

    def check(self) -> None:
        """Raise ProcessGoneError if the process has ended."""
        found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None:
            exited = found.si_code == os.CLD_EXITED
            raise ProcessGoneError(found.si_status if exited else -found.si_status)

    def _check_without_memory(self) -> None:
        select.select([self.pidfd], [], [], STOP_S)  # its memory is freed shortly before its end
        self.check()

    def mappings(self) -> bytes:
        """Return the list of its mappings.

        UnreadableError if it cannot be read or is too long, ProcessGoneError if it has ended.
        """
        try:
            with Path(f"/proc/{self.pid}/maps").open("rb") as maps:
                text = maps.read(MAPS_MOST)
        except OSError:
            text = b""
        if not text:
            self._check_without_memory()
            raise UnreadableError("its mappings cannot be read")
        if len(text) == MAPS_MOST:
            raise UnreadableError("it has too many mappings to be read")
        return text

    def read(self, node: TensorNode, most: int, check: Callable[[], object] = int) -> torch.Tensor:
        """Return a copy of a tensor of the frozen process; `check` is called before each piece.

        UnreadableError if it has more than `most` bytes or does not exist, ProcessGoneError if the
        process has ended.
        """
        dtype = DTYPES.get(node.dtype)
        if dtype is None or len(node.shape) != len(node.stride):
            raise UnreadableError(f"a tensor of type {node.dtype} cannot be read")
        if node.copy_bytes > most:
            raise UnreadableError("the output is larger than the memory limit allows")
        flat = torch.empty(node.span, dtype=dtype)
        try:
            shown = flat.as_strided(node.shape, node.stride)
        except RuntimeError as error:  # an empty tensor may still have an impossible shape
            raise UnreadableError(f"the output cannot be laid out: {error}") from error
        self._copy(flat, node.address, check)
        return apart(shown)

    def _copy(self, flat: torch.Tensor, address: int, check: Callable[[], object]) -> None:
        done, length = 0, flat.nbytes
        while done < length:
            check()
            size = min(PIECE, length - done)
            got, reason = read_memory(self.pid, address + done, flat.data_ptr() + done, size)
            if got <= 0:
                if reason == errno.ESRCH:
                    self._check_without_memory()
                got = self._read_write_only(address + done, flat.data_ptr() + done, size)
            if got <= 0:
                raise UnreadableError(f"the output cannot be read: {os.strerror(reason)}")
            done += got

    def _read_write_only(self, there: int, here: int, size: int) -> int:
        """Copy memory that may be mapped for writing alone; return how many bytes, 0 for none."""
        try:
            with Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
                memory.seek(there)
                return memory.readinto((ctypes.c_char * size).from_address(here)) or 0
        except (OSError, OverflowError):
            return 0

    def kill_nowait(self) -> None:
        """Kill the process without waiting for its exit."""
        if not self.killed:
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)

    def kill(self) -> None:
        """Kill the process and its descendants, and wait; TimeoutError if one does not exit."""
        if self.killed:
            return
        self.killed = True
        ended = kill_tree(self.pid) and select.select([self.pidfd], [], [], STOP_S)[0]
        if ended:
            os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        os.close(self.pidfd)
        if not ended:
            raise TimeoutError(f"process {self.pid} or one that it started does not end")


class OutputPipe:
    """A pipe for what a process writes, which is read up to a limit."""

    def __init__(self, limit: int, excess: Callable[[], Exception] | None = None) -> None:
        """`excess` creates the error beyond the limit; by default that of stdout and stderr."""
        self.limit = limit
        self.excess = excess or (lambda: too_much_printed(limit))
        self.text = bytearray()
        self.ended = False
        self.reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reader, False)

    def drain(self) -> None:
        """Read what is available; raise `excess()` if it is more than the limit."""
        while not self.ended:
            try:
                piece = os.read(self.reader, 65536)
            except BlockingIOError:
                return
            self.ended = not piece
            self.text += piece
            if len(self.text) > self.limit:
                del self.text[self.limit :]
                raise self.excess()

    def close_writer(self) -> None:
        """Close the write end, which the process has inherited."""
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def close(self) -> None:
        """Close both ends; the text stays."""
        self.close_writer()
        if self.reader >= 0:
            os.close(self.reader)
            self.reader = -1
