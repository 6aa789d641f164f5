"""The handover of a call between two GPU contexts, without a CPU.

The judge queues its whole window behind a wait for a private memory word. The candidate queues its
whole call behind a wait for a shared word, which the judge's stream writes. After the judge has
written its private word, no CPU takes part: the input appears, the candidate's stream runs, the
output is copied, and the GPU records both ends of the window in the judge's context. If a part of
the output is on the host, the window also waits until the judge has copied that part.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from runners.harness.gpu.memory import DeviceBuffer, HostBuffer, await_word, timed_event, write_word
from runners.harness.protocol.channel import CandidateReply

RELEASED, DONE = 0, 256
"""Byte offsets in the shared words: the judge writes `RELEASED` when the input is there, the
candidate writes `DONE` when its work is done. Each is on its own cache line."""

FROZEN_S = 0.25
"""Seconds for which a candidate is frozen while its queued call runs. A call that takes longer may
need work of the CPU, and is not queued ahead again."""


@dataclass(frozen=True, slots=True)
class WindowActions:
    """What the judge does in one call; on the GPU most of it is queued before the window."""

    stage: Callable[[], object]
    """Prepares the input where the candidate cannot see it."""
    queued: Callable[[CandidateReply | None], None]
    """Records where the output will be, before the window opens."""
    flush_cache: Callable[[], None]
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
        """The number of the latest call, which is the value of all words of its window."""
        shared.bytes[: 2 * DONE].zero_()
        words = torch.zeros(4 * DONE, dtype=torch.uint8, device="cuda")
        self.private_words = words
        self.start, self.taken, self.left, self.back = (
            words.data_ptr() + number * DONE for number in range(4)
        )
        # In order: the window may open, the host part is copied, the GPU is yielded, it is back.
        self.control_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.opened, self.shown, self.captured, self.closed = (timed_event() for _ in range(4))
        torch.cuda.synchronize()

    def run(self, actions: WindowActions) -> None:
        """Queue one window, then start it."""
        await_word(self.start, self.turn)  # the whole window is queued before it starts
        actions.flush_cache()
        self.opened.record()
        actions.reveal()
        actions.complete()
        self.shown.record()
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
        shared = self.shared.address
        for word in (self.start, self.taken, shared + RELEASED, shared + DONE):
            self._write(word)
        torch.cuda.synchronize()


class HandoverCall:
    """One call of a `Handover`, with the judge's actions."""

    def __init__(
        self,
        handover: Handover,
        patience_s: float,
        steps: WindowActions,
        *,
        withheld: bytes = b"",
        frozen_s: float = 0.0,
    ) -> None:
        handover.turn += 1
        self.handover = handover
        self.patience_s = patience_s
        self.steps = steps
        self.withheld = withheld
        """The frame with the input's scalars, if they are sent when the input is shown."""
        self.stage = steps.stage
        self.has_host_part = steps.take is not None
        """Whether the window waits for the host part of the output."""
        self.frozen_s = frozen_s
        self.first: CandidateReply | None = None

    def queued(self, first: CandidateReply | None) -> None:
        """Record where the output will be; None if the candidate did not report it in time."""
        self.first = first
        self.steps.queued(first)

    def release(self) -> None:
        """Open the window."""
        self.handover.run(self.steps)

    def is_shown(self) -> bool:
        """Whether the GPU has shown all of the input; the time before that does not count."""
        return bool(self.handover.shown.query())  # type: ignore[no-untyped-call]

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


DELAY_BYTES = 64 << 10
"""Bytes that the judge's copy engine moves while the GPU runs the candidate's work."""


@dataclass(frozen=True, slots=True)
class PlaceActions:
    """What the judge does in one place of a train; all of it is queued before the first call."""

    reveal: Callable[[], object]
    """Writes the input except for the withheld lines."""
    complete: Callable[[], None]
    """Writes the withheld lines."""
    capture: Callable[[], None]
    """Copies the output into the judge's memory."""


@dataclass(frozen=True, slots=True)
class TrainActions:
    """What the judge does in one train."""

    places: Sequence[PlaceActions]
    stage: Callable[[], object]
    """Prepares all inputs where the candidate cannot see them."""
    queued: Callable[[CandidateReply], None]
    """Records where the outputs will be, before the first window opens."""
    flush_cache: Callable[[], None]
    """Flushes the cache."""


class TrainWindows:
    """Queues the windows of a train; its events and words are created once for a candidate.

    To yield the GPU to the candidate, the judge's stream waits for a word that the judge's own copy
    engine writes some microseconds later. The GPU then runs what the candidate's context has queued
    for this call, and returns to the judge when nothing of that is left to run.
    """

    def __init__(self, handover: Handover, calls: int) -> None:
        self.handover = handover
        self.start = torch.zeros(1, dtype=torch.int32).pin_memory()
        """Written by the CPU, because a stream could share a hardware queue with one that waits."""
        self.opened = [timed_event() for _ in range(calls)]
        self.closed = [timed_event() for _ in range(calls)]
        self.copy_stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self.delay = torch.empty(DELAY_BYTES, dtype=torch.uint8).pin_memory()
        self.delayed = torch.empty(DELAY_BYTES, dtype=torch.uint8, device="cuda")
        self.delayed.copy_(self.delay, non_blocking=True)  # loads what the copies need
        torch.cuda.synchronize()

    def queue(self, first_turn: int, actions: TrainActions) -> None:
        """Queue all windows behind `start`, then open the first one."""
        last = first_turn + len(actions.places) - 1
        await_word(self.start.data_ptr(), last)
        for number, place in enumerate(actions.places):
            place.reveal()
            actions.flush_cache()
            place.complete()
            self.opened[number].record()
            write_word(self.handover.shared.address + RELEASED, first_turn + number)
            self._yield_gpu(first_turn + number)
            self.closed[number].record()
            place.capture()
        self.start[0] = last

    def _yield_gpu(self, turn: int) -> None:
        stream = int(self.copy_stream.cuda_stream)
        write_word(self.handover.left, turn)
        await_word(self.handover.left, turn, stream)
        with torch.cuda.stream(self.copy_stream):
            self.delayed.copy_(self.delay, non_blocking=True)
        write_word(self.handover.back, turn, stream)
        await_word(self.handover.back, turn)

    def abort(self) -> None:
        """End a train whose candidate will no longer answer."""
        self.start[0] = self.handover.turn
        self.handover.abort()

    def windows_ns(self) -> list[float]:
        """Nanoseconds of each window but the first, which follows no other call."""
        pairs = zip(self.opened[1:], self.closed[1:], strict=True)
        return [float(opened.elapsed_time(closed)) * 1e6 for opened, closed in pairs]


class TrainCall:
    """One train: many calls in one exchange with the candidate."""

    has_host_part = False
    withheld = b""

    def __init__(self, windows: TrainWindows, patience_s: float, actions: TrainActions) -> None:
        self.windows = windows
        self.patience_s = patience_s
        self.frozen_s = len(actions.places) * FROZEN_S
        self.actions = actions
        self.stage = actions.stage
        self.first_turn = windows.handover.turn + 1
        windows.handover.turn += len(actions.places)
        self.late = False
        """Whether the candidate did not queue the train in time; it then runs without windows."""

    def queued(self, first: CandidateReply | None) -> None:
        """Record where the outputs will be; None if the train was not queued in time."""
        self.late = first is None
        if first is not None:
            self.actions.queued(first)

    def release(self) -> None:
        """Run the train, or release all calls of a late one."""
        if self.late:
            self.windows.abort()
        else:
            self.windows.queue(self.first_turn, self.actions)

    def is_shown(self) -> bool:
        """Whether all inputs are shown; no scalars wait for that."""
        return True

    def take(self, last: CandidateReply) -> None:
        """Do nothing: no part of the output is on the host."""

    def over(self) -> bool:
        """Whether all windows have closed and all outputs are copied."""
        return bool(torch.cuda.default_stream().query())

    def window_ns(self) -> float:
        """The sum of all windows but the first."""
        return 0.0 if self.late else sum(self.windows.windows_ns())

    def host_part_ns(self) -> float:
        """Zero: no part of the output is on the host."""
        return 0.0
