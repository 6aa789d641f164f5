"""What a candidate prints, read as it comes and kept up to a limit."""

import os

from runners.contract.verdict import Verdict
from runners.harness.ruling import Ruling


class Printed:
    """The reading end of a candidate's streams."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.text = bytearray()
        self.ended = False
        self.fd, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.fd, False)

    def drain(self) -> None:
        """Read what is there, bytes beyond the limit not; Ruling when there are any."""
        while len(self.text) <= self.limit:
            try:
                more = os.read(self.fd, 65536)
            except BlockingIOError:
                return
            if not more:
                self.ended = True
                return
            self.text += more
        del self.text[self.limit :]
        raise Ruling(
            Verdict.OUTPUT_EXCEEDED,
            f"more than {self.limit >> 10} KiB were written to stdout or stderr",
        )

    def given_away(self) -> None:
        """Let go of the writing end, which is the candidate's by now."""
        os.close(self.writer)

    def close(self) -> None:
        """Let go of the reading end; what was read is kept."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
