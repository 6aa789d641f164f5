"""A pipe for what a process writes, which is read up to a limit."""

import os
from collections.abc import Callable

from runners.harness.verdicts import too_much_printed


class OutputPipe:
    """Both ends of the pipe, and what was read from it so far."""

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
