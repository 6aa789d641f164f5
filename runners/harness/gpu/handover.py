"""The handover of a call between two GPU contexts, without a CPU.

The judge queues its whole window behind a wait for a private memory word. The candidate queues its
whole call behind a wait for a shared word, which the judge's stream writes. After the judge has
written its private word, no CPU takes part: the input appears, the candidate's stream runs, the
output is copied, and the GPU records both ends of the window in the judge's context. If a part of
the output is on the host, the window also waits until the judge has copied that part.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from runners.harness.gpu.memory import DeviceBuffer, HostBuffer, await_word, write_word
from runners.harness.protocol.channel import CandidateReply

RELEASED, DONE = 0, 256
"""Byte offsets in the shared words: the judge writes `RELEASED` when the input is there, the
candidate writes `DONE` when its work is done. Each is on its own cache line."""


@dataclass(frozen=True, slots=True)
class WindowActions:
    """What the judge does in one call; on the GPU most of it is queued before the window."""

    queued: Callable[[CandidateReply | None], None]
    """Records where the output will be, before the window opens."""
    sweep: Callable[[], None]
    """Flushes the cache."""
    reveal: Callable[[], None]
    """Shows the candidate the input except for the withheld lines."""
    complete: Callable[[], None]
    """Shows the candidate the withheld lines, immediately before its release."""
    capture: Callable[[], None]
    """Copies the output into the judge's memory."""
    take: Callable[[CandidateReply], None] | None = None
    """Copies the host part of the output, which the last frame has or names; None without one."""


class Handover:
    """The judge's side: opens one window for each call, one call at a time."""

    def __init__(self, shared: DeviceBuffer | HostBuffer) -> None:
        self.shared = shared
        self.turn = 0
        shared.bytes[: 2 * DONE].zero_()
        words = torch.zeros(2 * DONE, dtype=torch.uint8, device="cuda")
        self.private_words = words
        self.start, self.taken = words.data_ptr(), words.data_ptr() + DONE
        self.control_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.opened = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.captured = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.closed = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()

    def run(self, actions: WindowActions) -> None:
        """Queue one window, then start it."""
        await_word(self.start, self.turn)  # the whole window is queued before it starts
        actions.sweep()
        self.opened.record()
        actions.reveal()
        actions.complete()
        write_word(self.shared.address + RELEASED, self.turn)
        await_word(self.shared.address + DONE, self.turn)
        actions.capture()
        if actions.take:
            self.captured.record()
            await_word(self.taken, self.turn)
        self.closed.record()
        self._write(self.start)

    def close(self) -> None:
        """Close a window that waits until the judge has copied the host part of the output."""
        self._write(self.taken)

    def _write(self, word: int) -> None:
        write_word(word, self.turn, self.control_stream.cuda_stream)

    def abort(self) -> None:
        """End a window whose candidate will no longer answer: write all words that it waits for."""
        for word in (self.start, self.taken, self.shared.address + DONE):
            self._write(word)
        torch.cuda.synchronize()


class HandoverCall:
    """One call of a `Handover`, with the judge's actions."""

    def __init__(self, handover: Handover, patience_s: float, steps: WindowActions) -> None:
        handover.turn += 1
        self.handover = handover
        self.patience_s = patience_s
        self.steps = steps
        self.has_host_part = steps.take is not None
        """Whether the window waits for the host part of the output."""

    def queued(self, first: CandidateReply | None) -> None:
        """Record where the output will be; None if the candidate did not report it in time."""
        self.steps.queued(first)

    def release(self) -> None:
        """Open the window."""
        self.handover.run(self.steps)

    def take(self, last: CandidateReply) -> None:
        """Copy the host part of the output, which the last frame has or names; end the window."""
        if self.steps.take:
            self.steps.take(last)
        self.handover.close()

    def over(self) -> bool:
        """Whether the window has closed."""
        return bool(self.handover.closed.query())  # type: ignore[no-untyped-call]

    def window_ns(self) -> float:
        """Nanoseconds from just before the input became visible until the output was copied."""
        return float(self.handover.opened.elapsed_time(self.handover.closed)) * 1e6

    def host_part_ns(self) -> float:
        """Nanoseconds of the window's last part, in which the judge copied the host part."""
        if not self.has_host_part:
            return 0.0
        return float(self.handover.captured.elapsed_time(self.handover.closed)) * 1e6
