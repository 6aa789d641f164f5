"""The hand-over between two GPU contexts, done by the GPU's own front end.

The judge queues its whole window behind a word of its own, the candidate its whole call behind a
word that the judge's queue writes. Once the judge writes the first word, no processor takes part
any more: the input appears, the candidate's queue runs, the answer is copied, and both ends of the
window are the GPU's own time stamps in the judge's context. Only where a part of the answer lies on
the host, the window waits until the judge has taken that as well.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from runners.harness.gpu.memory import DeviceBuffer, HostBuffer, await_word, write_word
from runners.harness.protocol.channel import CandidateReply

RELEASED, DONE = 0, 256
"""Where in the shared words the judge says that the input is there, and the candidate that its
work is done; bytes, on cache lines of their own."""


@dataclass(frozen=True, slots=True)
class WindowActions:
    """What the judge does in a turn; on the GPU all of it is queued."""

    queued: Callable[[CandidateReply | None], None]
    """Takes note of where the output will lie, before the window opens."""
    sweep: Callable[[], None]
    """Leaves the cache as it is left each time, whatever a candidate did to it before."""
    reveal: Callable[[], None]
    """Lets the candidate see nearly all of the input."""
    complete: Callable[[], None]
    """Lets it see the rest, at the very end."""
    capture: Callable[[], None]
    """Makes the output the judge's own."""
    take: Callable[[CandidateReply], None] | None = None
    """Makes the judge's own what of the output the last frame tells; None where it tells nothing
    that counts."""


class Handover:
    """The judge's side: one turn after the other, each with a window of its own."""

    def __init__(self, shared: DeviceBuffer | HostBuffer) -> None:
        self.shared = shared
        self.turn = 0
        shared.bytes[: 2 * DONE].zero_()
        words = torch.zeros(2 * DONE, dtype=torch.uint8, device="cuda")
        self.own = words
        self.start, self.taken = words.data_ptr(), words.data_ptr() + DONE
        self.beside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.opened = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.captured = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.closed = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()

    def run(self, steps: WindowActions) -> None:
        """Queue one window and let it begin."""
        await_word(self.start, self.turn)  # so that nothing comes between its parts
        steps.sweep()
        self.opened.record()
        steps.reveal()
        steps.complete()
        write_word(self.shared.address + RELEASED, self.turn)
        await_word(self.shared.address + DONE, self.turn)
        steps.capture()
        if steps.take:
            self.captured.record()
            await_word(self.taken, self.turn)
        self.closed.record()
        self._write(self.start)

    def close(self) -> None:
        """Let a window close that waits until the judge has taken what was told."""
        self._write(self.taken)

    def _write(self, word: int) -> None:
        write_word(word, self.turn, self.beside.cuda_stream)

    def abort(self) -> None:
        """Let go of a window whose candidate will not answer any more."""
        for word in (self.start, self.taken, self.shared.address + DONE):
            self._write(word)
        torch.cuda.synchronize()


class HandoverCall:
    """One turn through the gate."""

    def __init__(self, gate: Handover, patience_s: float, steps: WindowActions) -> None:
        gate.turn += 1
        self.gate = gate
        self.patience_s = patience_s
        self.steps = steps
        self.told = steps.take is not None

    def queued(self, first: CandidateReply | None) -> None:
        """Take note of where the output will lie; None when the candidate was too late to say."""
        self.steps.queued(first)

    def release(self) -> None:
        """Open the window."""
        self.gate.run(self.steps)

    def take(self, last: CandidateReply) -> None:
        """Make what the last frame tells the judge's own, and let the window close."""
        if self.steps.take:
            self.steps.take(last)
        self.gate.close()

    def over(self) -> bool:
        """Whether the window has closed."""
        return bool(self.gate.closed.query())  # type: ignore[no-untyped-call]

    def window_ns(self) -> float:
        """From before the input was there until the answer was the judge's own."""
        return float(self.gate.opened.elapsed_time(self.gate.closed)) * 1e6

    def told_ns(self) -> float:
        """Its last part, in which the answer was still to be taken from the host."""
        if not self.told:
            return 0.0
        return float(self.gate.captured.elapsed_time(self.gate.closed)) * 1e6
