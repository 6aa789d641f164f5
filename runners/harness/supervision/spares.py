"""Spares: processes for candidates that start before their judge has a request.

A spare is forked from the template and enters its sandbox; on a GPU it also creates a context.
These steps take most of the time of a candidate's start. It holds nothing of any request, because
the template has read none. It becomes a candidate, once, when it gets a submission's files and
memory. Before anything is calibrated or timed, the judge waits until every spare has started, so
none creates a context meanwhile.
"""

import select
import socket
from collections.abc import Callable

from runners.harness.protocol import channel
from runners.harness.supervision.process import CandidateProcess, OutputPipe

Fork = Callable[[channel.CandidateSpec | channel.SpareSpec, list[int]], None]
"""Forks a process that inherits the descriptors; OSError if the template is gone."""
START_S = 30.0
"""Seconds for a spare to start."""


class ForkedProcess:
    """A spare or a candidate: the judge's end of its socket, and the pipe of what it prints."""

    def __init__(
        self, fork: Fork, spec: channel.CandidateSpec | channel.SpareSpec, fds: list[int]
    ) -> None:
        """OSError if it cannot be forked."""
        self.orders, theirs = channel.pair()
        self.printed = OutputPipe(spec.limits.output)
        self.process: CandidateProcess | None = None
        self.started = False
        try:
            fork(spec, [theirs.fileno(), self.printed.writer, *fds])
        except OSError:
            self.close()
            raise
        finally:
            theirs.close()  # otherwise the exit of the process would not be noticed
            self.printed.close_writer()

    def await_start(self, *request_fds: int) -> bool:
        """Wait until this spare has started.

        False if it does not start, or if one of `request_fds` becomes readable.
        """
        while not self.started:
            ready = select.select([*request_fds, self.orders.fileno()], [], [], START_S)[0]
            if self.orders.fileno() not in ready or not self._read():
                return False
        return True

    def _read(self) -> bool:
        """Read one frame; False if the process has ended."""
        frame = self.orders.recv(channel.FRAME_MAX)
        if not frame:
            return False
        message = channel.HANDSHAKE.validate_json(frame)
        if isinstance(message, channel.CandidatePid):
            self.process = CandidateProcess(message.pid)
        self.started = isinstance(message, channel.SpareStarted)
        return True

    def assign(self, spec: channel.CandidateSpec, fds: list[int]) -> None:
        """Make this spare a candidate; OSError if it has ended."""
        socket.send_fds(self.orders, [channel.encode(spec)], fds)

    def close(self) -> None:
        """Kill it, unless its process is unknown; then it exits when it finds its socket closed."""
        self.orders.close()
        self.printed.close()
        if self.process is not None:
            self.process.kill()


class Spares:
    """The spares of one judge."""

    def __init__(self, fork: Fork) -> None:
        self.fork = fork
        self.waiting: list[tuple[channel.SpareSpec, ForkedProcess]] = []

    def prepare(self, spec: channel.SpareSpec, most: int, request_fd: int) -> None:
        """Start spares, one after the other, until a request arrives or one does not start.

        A spare that is still starting when the request arrives is used too.
        """
        while len(self.waiting) < most and not select.select([request_fd], [], [], 0)[0]:
            spare = ForkedProcess(self.fork, spec, [])
            self.waiting.append((spec, spare))
            if not spare.await_start(request_fd):
                return

    def fill(self, spec: channel.SpareSpec, count: int) -> None:
        """Start spares, without waiting, until there are `count`, unless others do not fit."""
        while len(self.waiting) < count and all(each == spec for each, _ in self.waiting):
            self.waiting.append((spec, ForkedProcess(self.fork, spec, [])))

    def await_all(self) -> None:
        """Wait until every spare has started, and end those that do not start."""
        for each in tuple(self.waiting):
            if not each[1].await_start():
                self.waiting.remove(each)
                each[1].close()

    def take(self, spec: channel.CandidateSpec, fds: list[int]) -> ForkedProcess | None:
        """Turn a spare into this candidate and return it; None if no spare fits."""
        while self.waiting and self.waiting[0][0].fits(spec):
            _, spare = self.waiting.pop(0)
            try:
                spare.assign(spec, fds)
            except OSError:
                spare.close()
            else:
                return spare
        return None

    def close(self) -> None:
        """End the spares that were not used; they have started no processes."""
        for _, spare in self.waiting:
            if spare.process is not None:
                spare.process.kill_nowait()
        while self.waiting:
            self.waiting.pop()[1].close()
