"""Chooses the seat that a task's device asks for, and has several candidates start at once."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Self

from runners.harness.arena import Plan
from runners.harness.cuda.buffers import starts_at_once
from runners.harness.cuda.seat import device_start
from runners.harness.seat import Seat, host_start
from runners.harness.session import Session
from runners.harness.values import Node


class Lineup:
    """Fresh candidates for inputs like `room` and outputs like `expected`, each used once.

    They start beside each other, for on a GPU one needs a fifth of a second; nothing is timed
    before all of them stand still, and no submission is in them yet.
    """

    def __init__(self, session: Session, room: Plan, expected: Node | None) -> None:
        self.session = session
        self.room = room
        self.expected = expected
        self.waiting: deque[tuple[ExitStack, Seat]] = deque()

    def prepare(self, count: int) -> None:
        """Have `count` candidates wait, or as many as a GPU has room for."""
        if self.session.on_gpu and count > 1:
            count = min(count, starts_at_once(self.room, self.expected))
        with ExitStack() as failed:
            stacks = [failed.enter_context(ExitStack()) for _ in range(len(self.waiting), count)]
            starts = [(stack, stack.enter_context(self._start())) for stack in stacks]
            seats = [(stack, seated()) for stack, seated in starts]
            self.waiting += [(stack.pop_all(), seat) for stack, seat in seats]

    def _start(self) -> AbstractContextManager[Callable[[], Seat]]:
        if self.session.on_gpu:
            return device_start(self.session, self.room, self.expected)
        return host_start(self.session, self.room)

    @contextmanager
    def seat(self) -> Iterator[Seat]:
        """The next candidate, killed at the end."""
        self.prepare(1)
        stack, seat = self.waiting.popleft()
        with stack:
            yield seat

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as unused:  # all of them, even if one does not end
            for stack, _seat in self.waiting:
                unused.enter_context(stack)
            self.waiting.clear()


@contextmanager
def take_seat(session: Session, room: Plan, expected: Node | None) -> Iterator[Seat]:
    """One fresh candidate."""
    with Lineup(session, room, expected) as lineup, lineup.seat() as seat:
        yield seat
