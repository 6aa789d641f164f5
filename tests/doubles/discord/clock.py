"""The clock of the local Discord, which tests can advance past deadlines and rate windows."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """The real time, plus what tests have added to it."""

    def __init__(self) -> None:
        self._offset = 0.0
        self._held: tuple[float, float] | None = None

    def now(self) -> float:
        return self._real()[0] + self._offset

    def elapsed(self) -> float:
        """A time that never runs backwards."""
        return self._real()[1] + self._offset

    def _real(self) -> tuple[float, float]:
        return self._held or (time.time(), time.monotonic())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let only `advance` move the time in this block, however busy the machine is."""
        self._held = time.time(), time.monotonic()
        try:
            yield
        finally:
            _, begin = self._held
            self._held = None
            self._offset -= time.monotonic() - begin

    def advance(self, seconds: float) -> None:
        self._offset += seconds
