"""The judge's handle of one candidate: starts it, sends requests, times replies and kills it."""

import functools
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Self

from pydantic import ValidationError

from runners.contract.verdict import Verdict
from runners.harness.deadline import Deadline
from runners.harness.protocol import channel
from runners.harness.protocol.arena import Arena
from runners.harness.sandbox import charged_memory
from runners.harness.sandbox.process_limits import (
    holds_more,
    memory_of_tree,
    precedence,
    shared_memory,
)
from runners.harness.supervision import process, waiting
from runners.harness.supervision.spares import ForkedProcess
from runners.harness.supervision.template import TemplateProcess
from runners.harness.verdicts import VerdictError, error_of_exit

WATCH_S = 0.1
"""Interval in seconds at which a waiting judge checks a candidate's memory, output and deadline."""
START_S = 30.0
"""Seconds for a candidate to start; only trusted code runs until then."""
EXIT_S = 10.0
"""Seconds for a process to exit after it has closed its sockets; with a GPU, over one is usual."""
ANSWERED_EARLY = "the candidate answered before its work was done"
LATE_S = 2.0
"""Seconds that an exit may take after the deadline, or the work on a GPU after the last frame."""


class StartError(Exception):
    """A candidate did not start. This is an internal error, because no submitted code had run."""


class CandidateHandle:
    """One candidate process; unless it `may_run`, it is frozen while no request is executed."""

    def __init__(
        self,
        template: TemplateProcess,
        spec: channel.CandidateSpec,
        shared: list[int],
        arena: Arena | None = None,
    ) -> None:
        self.spec, self.arena = spec, arena
        self.next_check = 0.0
        self.least_waited: dict[bytes, int] = {}  # request -> the least wait for cores of its calls
        self.computing: tuple[int, ...] = ()  # the threads that computed in its last call
        self.watched = True
        """Whether memory of no process counts as its own; an ended submission may have left it."""
        try:
            fork = template.fork_candidate
            forked = template.spares.take(spec, shared) or ForkedProcess(fork, spec, shared)
        except OSError as error:
            raise StartError(f"a candidate did not start: {error}") from error
        self.orders, self.printed = forked.orders, forked.printed
        self.known_process = forked.process

    @functools.cached_property
    def ready(self) -> channel.CandidateReady:
        """The candidate's ready message; waits for it."""
        try:
            ready = self._await_ready(Deadline.after(START_S))
        except (OSError, ValidationError, StartError) as error:
            self.end()
            printed = self.printed.text.decode(errors="replace")
            raise StartError(f"a candidate did not start: {error}\n{printed}") from error
        self._start_watching()
        return ready

    def _await_ready(self, deadline: Deadline) -> channel.CandidateReady:
        self.orders.settimeout(START_S)
        while True:
            if deadline.remaining < 0:
                raise StartError("it did not answer in time")
            if not (frame := self.orders.recv(channel.FRAME_MAX)):
                self.printed.drain()
                raise StartError("it ended at once")
            message = channel.HANDSHAKE.validate_json(frame)
            if isinstance(message, channel.CandidateReady):
                return message
            if isinstance(message, channel.CandidatePid):
                self.known_process = process.CandidateProcess(message.pid)

    def _start_watching(self) -> None:
        self.inherited = memory_of_tree(self.process.pid)
        self.shared_before = shared_memory()
        self.driver_before = charged_memory.kept_by_drivers()
        self.unmapped_before = charged_memory.unmapped_memory()
        self.known_mappings = charged_memory.shared_mappings(self.process.pid)
        self.orders.settimeout(0)
        self.poll = select.poll()
        for each in (self.orders, self.printed.reader, self.process.pidfd):
            self.poll.register(each, select.POLLIN)

    @property
    def process(self) -> process.CandidateProcess:
        """The candidate's process; waits until it has started."""
        if self.known_process is None:
            _ = self.ready
        if self.known_process is None:
            raise StartError("the candidate has no process")
        return self.known_process

    def request(self, order: bytes, deadline: Deadline) -> channel.Exchange:
        """Send a request to the frozen candidate, let it run, and freeze it when it has replied."""
        with self._as_verdicts(deadline):
            self._refuse_unrequested()
            return self._timed_reply(order, deadline)

    def call(self, order: bytes, deadline: Deadline, go: Callable[[], bytes]) -> channel.Exchange:
        """Let the candidate prepare a call, freeze it, and time the call until it is frozen again.

        `go` writes its input and returns the frame with the scalars, which only the window shows.
        """
        with self._as_verdicts(deadline):
            self._refuse_unrequested()
            self.orders.sendall(order)
            preparation = waiting.Preparation(self.process)
            self.process.resume()
            frame = self._await_frame(deadline)
            self.process.freeze()
            prepared = preparation.used_ns()
            if frame != channel.READY_FRAME:
                self._checked_reply(frame)
                raise VerdictError(Verdict.DISALLOWED, "the candidate answered out of turn")
            self._refuse_unrequested()
            called = self._timed_reply(go(), deadline)
            least = min(called.waited_ns, self.least_waited.get(order, called.waited_ns))
            self.least_waited[order], waited = least, called.waited_ns - least
            return replace(called, waited_ns=waited, least_waited_ns=least, prepared_ns=prepared)

    def _timed_reply(self, order: bytes, deadline: Deadline) -> channel.Exchange:
        self.orders.sendall(order)
        before, used = waiting.thread_times(self.process.pid), self.process.cpu_ns()
        judge = waiting.own_wait_ns()
        with waiting.spread(self.computing, self.process.pid, before) as free_main:
            self.process.verify_frozen()  # it reads files of every thread, so not in the window
            due, self.next_check = self.next_check, time.monotonic() + WATCH_S  # and so does this
            begin = time.perf_counter_ns()
            self.process.let_run()
            free_main()
            frame, end = self._await_frame(deadline), self.process.freeze()
        self.next_check = due
        self._enforce(deadline)
        reply = self._checked_reply(frame)
        used, window = self.process.cpu_ns() - used, end - begin
        after, judge = waiting.thread_times(self.process.pid), waiting.own_wait_ns() - judge
        self.computing = waiting.computing(before, after)
        waited = min(waiting.waited_ns(before, after) + judge, len(waiting.CORES) * window - used)
        return channel.Exchange(window, reply, used, waited_ns=max(0, waited))

    def call_on_device(
        self, order: bytes, deadline: Deadline, call: channel.DeviceCall
    ) -> channel.Exchange:
        """Let the candidate queue its work, release the input, and wait until the output is copied.

        The GPU measures the window of `call`, so the time of this code does not count. The
        candidate is frozen afterwards.
        """
        with self._as_verdicts(deadline):
            self._refuse_unrequested()
            self.orders.sendall(order)
            self.process.resume()
            call.stage()
            first = self._until(lambda: False, Deadline.after(call.patience_s), deadline, WATCH_S)
            reply = self._checked_reply(first) if first else None
            if first and call.frozen_s:
                self.process.freeze()
            call.queued(reply)
            call.release()
            if call.withheld:
                self._confirm(call.is_shown, deadline, deadline)
                self.orders.sendall(call.withheld)
            if first is None:
                self._checked_reply(self._await_frame(deadline))
            last = self._run_frozen(call, deadline) if first else None
            late = not first or (self.process.frozen and not call.over())
            self.process.resume()
            if not last and not call.has_host_part:
                last = self._until(call.over, deadline, deadline)
            reply = self._checked_reply(last or self._await_frame(deadline))
            if call.has_host_part:
                call.take(reply)
            self._confirm(call.over, Deadline.after(LATE_S), deadline)
            self.process.freeze()
            self._enforce(deadline)
            host_part_ns = call.host_part_ns()
            return channel.Exchange(call.window_ns(), reply, host_part_ns=host_part_ns, late=late)

    def _run_frozen(self, call: channel.DeviceCall, deadline: Deadline) -> bytes | None:
        """Wait while the candidate is frozen; trusted code is not, and may answer meanwhile."""
        last = self._until(call.over, Deadline.after(call.frozen_s), deadline)
        if last and self.process.frozen:
            raise VerdictError(Verdict.DISALLOWED, ANSWERED_EARLY)
        return last

    def _until(
        self, done: Callable[[], bool], patience: Deadline, deadline: Deadline, wait_s: float = 0.0
    ) -> bytes | None:
        """Poll every `wait_s` seconds until `done()`, the end of `patience`, or a frame."""
        while not done() and (left := patience.remaining) > 0:
            if (frame := self._poll_frame(deadline, min(wait_s, left))) is not None:
                return frame
        self._enforce(deadline)
        return None

    def _confirm(self, done: Callable[[], bool], patience: Deadline, deadline: Deadline) -> None:
        if self._until(done, patience, deadline) is not None or not done():
            raise VerdictError(Verdict.DISALLOWED, ANSWERED_EARLY)

    def verify_frozen(self, deadline: Deadline) -> None:
        """Refuse a candidate that ran after it was frozen, because its output may have changed."""
        with self._as_verdicts(deadline):
            self.process.verify_frozen()

    def _checked_reply(self, frame: bytes) -> channel.CandidateReply:
        reply = channel.CandidateReply.model_validate_json(frame)
        self.printed.drain()
        if reply.status is not channel.Status.DONE:
            raise VerdictError(channel.FAILURES[reply.status], reply.message)
        return reply

    @contextmanager
    def _as_verdicts(self, deadline: Deadline) -> Iterator[None]:
        """Turn every failure of a candidate into its verdict."""
        try:
            yield
        except process.ProcessGoneError as gone:
            self.printed.drain()
            raise error_of_exit(gone.status) from gone
        except ValidationError as error:
            raise VerdictError(Verdict.DISALLOWED, "the candidate sent no valid reply") from error
        except process.CandidateRanError as error:
            message = f"the kernel did not stay frozen: {error}"
            raise VerdictError(Verdict.DISALLOWED, message) from error
        except BlockingIOError as error:
            message = "the candidate does not read its requests"
            raise VerdictError(Verdict.DISALLOWED, message) from error
        except (BrokenPipeError, ConnectionResetError) as error:
            raise self._verdict_of_closed_socket(deadline) from error

    def _poll_frame(self, deadline: Deadline, wait_s: float = 0.0) -> bytes | None:
        """Wait `wait_s` seconds for a frame; raise if the candidate has exited or broke a limit."""
        ready = {fd for fd, _ in self.poll.poll(wait_s * 1000)}
        if self.orders.fileno() in ready:
            if frame := self.orders.recv(channel.FRAME_MAX):
                return frame
            raise ConnectionResetError
        if self.printed.reader in ready:
            self.printed.drain()
            if self.printed.ended:  # poll would report the end again each time
                self.poll.unregister(self.printed.reader)
        if self.process.pidfd in ready:
            self.process.check()
        self._enforce(deadline)
        return None

    def _refuse_unrequested(self) -> None:
        try:
            frame = self.orders.recv(1)
        except BlockingIOError:
            return
        if frame:
            raise VerdictError(Verdict.DISALLOWED, "the candidate sent a reply without a request")
        raise ConnectionResetError

    def _await_frame(self, deadline: Deadline) -> bytes:
        while (frame := self._poll_frame(deadline, WATCH_S)) is None:
            precedence.take(wanted=False)  # only short calls run before other processes
        return frame

    def _enforce(self, deadline: Deadline) -> None:
        if deadline.remaining < 0:
            raise VerdictError(Verdict.TIMED_OUT, "the time limit passed")
        if (now := time.monotonic()) < self.next_check:
            return
        self.next_check = now + WATCH_S
        most = self.spec.limits.memory
        limit = most + self.inherited - (self.arena.excess_bytes if self.arena else 0)
        more = holds_more(self.process.pid, limit, deadline.remaining)
        if more or (self.watched and (self._hides_more(most) or self._burdens_driver(most))):
            message = f"more than {most >> 20} MiB of memory were used"
            raise VerdictError(Verdict.MEMORY_EXCEEDED, message)

    def _hides_more(self, most: int) -> bool:
        """Return whether the candidate keeps too much memory that is not counted as its own.

        It is memory that no process has mapped, or over `most` bytes of shared memory beyond its
        files. Twice its inputs are not counted: the judge's, and the calibration candidate's.
        """
        gpu, pid, kill = self.spec.shared is not None, self.process.pid, self._kill
        if charged_memory.keeps_unmapped(pid, self.unmapped_before, most, gpu=gpu, kill=kill):
            return True
        limit = most + self.spec.limits.disk + (2 * self.arena.input_size if self.arena else 0)
        before, known = self.shared_before, self.known_mappings
        return charged_memory.hides_more(pid, before, limit, gpu=gpu, kill=kill, known=known)

    def _kill(self) -> None:
        self.process.kill()
        if self.arena:
            self.arena.free_excess()

    def _burdens_driver(self, most: int) -> bool:
        """Return whether a GPU's driver keeps too much memory for the candidate."""
        if self.spec.shared is None:
            return False
        pid, before, kill = self.process.pid, self.driver_before, self.process.kill
        return charged_memory.burdens_driver(pid, self.inherited, before, most, kill=kill)

    def _verdict_of_closed_socket(self, deadline: Deadline) -> VerdictError:
        # An exiting process closes its sockets shortly before it ends; a frozen one cannot exit.
        wait = 0.0 if self.process.frozen else min(EXIT_S, max(0.0, deadline.remaining) + LATE_S)
        end = Deadline.after(wait)
        try:
            while end.remaining > 0 and not select.select([self.process.pidfd], [], [], WATCH_S)[0]:
                self._enforce(Deadline.after(WATCH_S))  # it may still run, and take memory
            self.process.check()
        except process.ProcessGoneError as gone:
            return error_of_exit(gone.status)
        return VerdictError(Verdict.DISALLOWED, "the candidate closed its socket to the judge")

    def close(self) -> None:
        """Kill the candidate and everything that it started, and close its descriptors."""
        if self.known_process is None and self.orders.fileno() >= 0:
            with suppress(StartError):
                _ = self.ready  # its process id is needed to kill it
        self.end()

    def end(self) -> None:
        """Kill the candidate's process, if it is known, and close its descriptors."""
        if self.known_process is not None:
            self.known_process.kill()
        self.orders.close()
        self.printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
