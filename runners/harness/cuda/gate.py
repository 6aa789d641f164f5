"""The hand-over between two GPU contexts, done by the GPU's own front end.

The judge queues its whole window behind a word of its own, the candidate its whole call behind a
word that the judge's queue writes. Once the judge writes the first word, no processor takes part
any more: the input appears, the candidate's queue runs, the answer is copied, and both ends of the
window are the GPU's own time stamps in the judge's context.
"""

from collections.abc import Callable

import torch

from runners.harness.arena import READY, Words
from runners.harness.cuda.driver import await_word, write_word
from runners.harness.cuda.pinned import HostBuffer
from runners.harness.cuda.vmm import DeviceBuffer

RELEASED, DONE = 0, 256
"""Where in the shared words the judge says that the input is there, and the candidate that its
work is done; bytes, on cache lines of their own."""


class Gate:
    """The judge's side: one turn after the other, each with a window of its own."""

    def __init__(self, shared: DeviceBuffer | HostBuffer, host: Words) -> None:
        self.shared = shared
        self.host = host
        self.turn = 0
        shared.bytes[: 2 * DONE].zero_()
        self.start = torch.zeros(1, dtype=torch.int32, device="cuda")
        self.beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.opened = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.closed = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()

    def run(self, reveal: Callable[[], None], capture: Callable[[], None]) -> None:
        """Queue one window and let it begin."""
        await_word(self.start.data_ptr(), self.turn)  # so that nothing comes between its parts
        self.opened.record()
        reveal()
        write_word(self.shared.address + RELEASED, self.turn)
        await_word(self.shared.address + DONE, self.turn)
        capture()
        self.closed.record()
        write_word(self.start.data_ptr(), self.turn, self.beside.cuda_stream)

    def abort(self) -> None:
        """Let go of a window whose candidate will not answer any more."""
        for word in (self.start.data_ptr(), self.shared.address + DONE):
            write_word(word, self.turn, self.beside.cuda_stream)
        torch.cuda.synchronize()


class Crossing:
    """One turn through the gate."""

    def __init__(
        self,
        gate: Gate,
        patience_s: float,
        reveal: Callable[[], None],
        capture: Callable[[], None],
    ) -> None:
        gate.turn += 1
        self.gate = gate
        self.patience_s = patience_s
        self.reveal = reveal
        self.capture = capture

    def ready(self) -> bool:
        """Whether the candidate has queued its call, or waits for the input."""
        return self.gate.host.read(READY) == self.gate.turn

    def release(self) -> None:
        """Open the window."""
        self.gate.run(self.reveal, self.capture)

    def over(self) -> bool:
        """Whether the window has closed."""
        return bool(self.gate.closed.query())  # type: ignore[no-untyped-call]

    def window_ns(self) -> float:
        """From before the input was there until the answer was the judge's own."""
        return float(self.gate.opened.elapsed_time(self.gate.closed)) * 1e6
