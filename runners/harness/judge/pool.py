"""Chooses the seat that a task's device asks for, and has several candidates start at once."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Self

from runners.contract.task import IsolationLayer
from runners.harness.gpu.buffers import starts_at_once
from runners.harness.judge.device_candidate import device_start
from runners.harness.judge.host_candidate import HostCandidate, host_start
from runners.harness.judge.session import EvaluationSession
from runners.harness.protocol.arena import Plan
from runners.harness.protocol.values import Node


class CandidatePool:
    """Fresh candidates for inputs like `room` and outputs like `expected`, each used once.

    They start beside each other, for on a GPU one needs a seventh of a second; nothing is timed
    before all of them stand still, and no submission is in them yet. On a GPU a candidate's end
    takes nearly as long, so that who comes next may find his seat meanwhile.
    """

    def __init__(self, session: EvaluationSession, room: Plan, expected: Node | None) -> None:
        self.session = session
        self.room = room
        self.expected = expected
        self.starting: deque[tuple[ExitStack, Callable[[], HostCandidate]]] = deque()
        self.waiting: deque[tuple[ExitStack, HostCandidate]] = deque()
        self.dying: list[ExitStack] = []

    def begin(self, count: int) -> None:
        """Have candidates start, up to `count` or as many as a GPU has room for."""
        if self.session.on_gpu and count > 1:
            count = min(count, starts_at_once(self.room, self.expected))
        with ExitStack() as failed:
            there = len(self.waiting) + len(self.starting)
            stacks = [failed.enter_context(ExitStack()) for _ in range(there, count)]
            begun = [(stack, stack.enter_context(self._start())) for stack in stacks]
            self.starting += [(stack.pop_all(), seated) for stack, seated in begun]

    def prepare(self, count: int) -> None:
        """Have that many candidates wait; where one does not start none is left."""
        with ExitStack() as failed:
            failed.callback(self.close)
            self.begin(count)
            while self.starting:
                stack, seated = self.starting[0]
                self.waiting.append((stack, seated()))
                self.starting.popleft()
            failed.pop_all()

    def _start(self) -> AbstractContextManager[Callable[[], HostCandidate]]:
        if self.session.on_gpu:
            return device_start(self.session, self.room, self.expected)
        return host_start(self.session, self.room)

    @contextmanager
    def seat(self) -> Iterator[HostCandidate]:
        """The next candidate, sent to its end afterwards."""
        self.prepare(1)
        stack, seat = self.waiting.popleft()
        try:
            yield seat
        finally:
            _strike(seat)
            self.dying.append(stack)

    def bury(self) -> None:
        """Wait until nothing runs any more of whoever was sent to its end."""
        with ExitStack() as ended:  # all of them, even if one does not end
            for stack in self.dying:
                ended.enter_context(stack)
            self.dying.clear()

    def close(self) -> None:
        """End all, and wait for it; what is asked for afterwards starts anew."""
        for _stack, seat in self.waiting:
            _strike(seat)
        with ExitStack() as unused:
            for stack, _ in (*self.starting, *self.waiting):
                unused.enter_context(stack)
            self.starting.clear()
            self.waiting.clear()
            unused.callback(self.bury)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _strike(seat: HostCandidate) -> None:
    """Send a candidate to its end and go on; whoever closes it waits for that.

    PID 1 of a namespace takes all others along. Elsewhere nobody would know them any more.
    """
    if IsolationLayer.NAMESPACES in seat.handle.welcome.layers:
        seat.handle.process.strike()


@contextmanager
def take_seat(
    session: EvaluationSession, room: Plan, expected: Node | None
) -> Iterator[HostCandidate]:
    """One fresh candidate."""
    with CandidatePool(session, room, expected) as lineup, lineup.seat() as seat:
        yield seat
