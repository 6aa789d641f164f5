"""The clock of the local Discord, which tests can advance past deadlines and rate windows."""

import time


class Clock:
    """The real time, plus what tests have added to it."""

    def __init__(self) -> None:
        self._offset = 0.0

    def now(self) -> float:
        return time.time() + self._offset

    def elapsed(self) -> float:
        """A time that never runs backwards."""
        return time.monotonic() + self._offset

    def advance(self, seconds: float) -> None:
        self._offset += seconds
