"""Rounds of timed calls: their raw windows and claims."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev

from runners.harness.timing.intervals import mean_of_faster_half, standard_error_of_median

DISTURBED_NS = 50_000.0
"""A calibration window is disturbed if it is this much longer than those before the import. Two
contexts that both compute take turns in time slices of milliseconds."""
DRIFT_MOST_NS = 3_000.0
"""The most by which calibration windows before and during a round may differ; on a quiet GPU they
differ by less than 1,000."""
DRIFT_HOSTED_NS = 20_000.0
"""The same limit if a part of the input is copied to host memory in every window. A busy host made
the windows differ by up to 16,000, an attack that leaves copies running by 44,000."""
DRIFT_NOISE = 6
"""The same limit as a multiple of the standard error of the first windows, if that is more."""
LATE_MOST = 3
"""The most calls of a round on a GPU that may be late although the rehearsal was not."""
DISCARDS_MOST = 10
"""The most calls of a round that are repeated for one reason; honest kernels rarely need any."""
WAITED_NS = 50_000.0
WAITED = 0.1
"""By how much longer a call on the CPU may wait for cores than the one that waited least, and still
count: in ns, or as a fraction of its window if that is more. The waits of all threads are added."""
LEFT_OUT = 2
"""For every this many calls that a round needs, it leaves out at most one."""
CALM_LEAST = 3
"""How many windows that did not wait suffice if others waited: of the reference, of calibration."""


def waited(waited_ns: float, window_ns: float) -> bool:
    """Whether a call on the CPU waited for cores for so long that its time is unreliable."""
    return waited_ns > max(WAITED_NS, WAITED * window_ns)


QUICKER_ECHO_NS = 10_000.0
"""The most CPU time in ns that an answer in machine code spares compared with one in Python."""
HIDDEN_NS = 4_000.0
"""The most GPU work in ns that fits into the window of a single call without making it longer than
a no-op's.

In a no-op's window the candidate also records its time stamps and writes the last word. Attacks
that skip these or poll for them gain 2.8 to 3.8 us (`hostile_cuda` in `tests/exploits`).
"""
SHORT_NS = 20_000.0
"""A kernel on a GPU whose calls take less is timed by trains."""
TRIMMED = 10
"""Of the sorted windows of trains, one in this many is left out at each end."""


def trimmed(windows: Sequence[float]) -> list[float]:
    """Return the values without the smallest and the largest ones, in order."""
    ordered, cut = sorted(windows), len(windows) // TRIMMED
    return ordered[cut : len(ordered) - cut]


def _error_of_trimmed(windows: Sequence[float]) -> float:
    kept = trimmed(windows)
    return stdev(kept) / math.sqrt(len(kept)) if len(kept) > 1 else 0.0


@dataclass(slots=True)
class Trains:
    """The trains of one candidate, in nanoseconds.

    The overhead of a window is measured with the calibration kernel in the same candidate, before
    it imports the submission: the windows of that kernel less its claims, which can be trusted.
    """

    calibration_windows: list[float] = field(default_factory=list)
    calibration_claims: list[float] = field(default_factory=list)
    windows: list[float] = field(default_factory=list)
    claims: list[float] = field(default_factory=list)
    least: float = -math.inf
    """The least value of the bound: the time of a single call less all that its window could hide.

    A window of a train does not wait for the candidate's copy engines; that of a single call does.
    """
    most: float = math.inf
    """The greatest value of the bound: the time of a single call plus all that it could hide.

    With copies in a second stream, a window of a train lasts for a time slice of the GPU, 2 ms.
    """

    calibration_ns: float | None = None
    """The calibration kernel's time from several candidates; None: only from this candidate."""

    @property
    def calibration_claim(self) -> float:
        """The calibration kernel's time in this candidate."""
        return fmean(trimmed(self.calibration_claims))

    @property
    def overhead(self) -> float:
        """The time of a window beyond its kernel's."""
        kernel = self.calibration_claim if self.calibration_ns is None else self.calibration_ns
        return fmean(trimmed(self.calibration_windows)) - kernel

    @property
    def bound(self) -> float:
        """The kernel's time by the judge's clock."""
        return min(self.most, max(self.least, fmean(trimmed(self.windows)) - self.overhead))

    @property
    def error(self) -> float:
        """The standard error of the bound."""
        parts = (self.windows, self.calibration_windows, self.calibration_claims)
        return math.hypot(*map(_error_of_trimmed, parts))


@dataclass(slots=True)
class Round:
    """The raw numbers of one fresh candidate, all in nanoseconds.

    Calibration windows are those of the calibration candidate, which only runs trusted code.
    """

    on_gpu: bool = False
    threads: int = 1
    """How many threads a kernel may use at once."""
    windows: list[float] = field(default_factory=list)
    """The timed windows by the judge's clock, from the input's release to the captured output."""
    claims: list[float] = field(default_factory=list)
    """The times by the candidate's clock, which is precise on a GPU, but forgeable."""
    cpu_ns_used: list[float] = field(default_factory=list)
    """CPU time of all of the candidate's threads in each window, counted by the Linux kernel."""
    calibration_cpu_ns: list[float] = field(default_factory=list)
    """CPU time of the calibration candidate in its windows beyond the time of its kernel."""
    prepared_ns: list[int] = field(default_factory=list)
    """On the CPU: CPU time in which the calibration candidate has read each request."""
    echo_cpu_ns: list[int] = field(default_factory=list)
    """On the CPU: CPU time of the calibration candidate for calls in which it only answers."""
    overheads_during: list[float] = field(default_factory=list)
    """Overheads of the calibration windows between the timed ones."""
    overheads_before: list[float] = field(default_factory=list)
    """Overheads of the calibration windows before the submission was imported."""
    own_overheads: list[float] = field(default_factory=list)
    """On a GPU: overheads of this round's own candidate before the submission was imported."""
    host_waits_ns: list[float] = field(default_factory=list)
    """On a GPU: how long the windows of `own_overheads` waited for the host part of the output."""
    calibration_ns: list[float] = field(default_factory=list)
    """On a GPU: the times of the trusted kernel in the windows of `own_overheads`."""
    waiting_windows: list[float] = field(default_factory=list)
    """On a GPU: windows of the trusted kernel when it waits for its input before it is launched."""
    trains: Trains | None = None
    """On a GPU: the trains of a short kernel, which replace its single calls."""
    could_train: bool = False
    """On a GPU: whether trains were possible for this workload."""
    claimed: bool = False
    """On a GPU: whether the claims are published, because every call was queued ahead."""
    remote: bool = False
    """On a GPU: inputs and outputs go through host memory, which lengthens every window."""
    hosted: bool = False
    """On a GPU: a part of the input lies on the host."""
    discarded: int = 0
    """Calls that were repeated: something ran while the candidate was frozen, calibration was
    disturbed, the call was late, or the GPU was slowed."""
    suspicions: Counter[type[Exception]] = field(default_factory=Counter)
    """How many calls were repeated for each kind of error that blames the submission."""
    left_out: list[float] = field(default_factory=list)
    """On the CPU: the windows of calls that waited for other processes."""
    left_out_ns: float = 0.0
    """How long these calls waited."""
    repeated: list[float] = field(default_factory=list)
    """The windows of discarded calls: a candidate can be late, or end a thread slowly, in any."""
    others_ns: Callable[[], float] = float
    """On the CPU: how much CPU time other processes have used since the round began."""
    reference_windows: list[float] = field(default_factory=list)
    """On the CPU: the windows of the reference, from before and after the timed ones."""
    reference_waited: list[float] = field(default_factory=list)
    """Those of its windows that waited for other processes."""
    late: int = 0
    """On a GPU: calls since the last restart that were not queued in time."""

    def add(self, window_ns: float, claimed_ns: float, cpu_ns: int) -> None:
        """Add a timed call; on a GPU its CPU time is not used."""
        self.windows.append(window_ns)
        self.claims.append(claimed_ns)
        if not self.on_gpu:
            self.cpu_ns_used.append(cpu_ns)

    def leaves_out(self, waited_ns: float, window_ns: float, cpu_ns: int, most: int) -> bool:
        """Whether a call is left out because it waited for other processes; if so, record it.

        At most `most` calls are, and all of them together have waited at most as long as other
        processes have used the cores in this round. A candidate can make its threads wait in calls
        of its choice. So the CPU time of these calls counts, and `choosable` is added to the time.
        """
        if not waited(waited_ns, window_ns) or len(self.left_out) >= most:
            return False
        if self.left_out_ns + waited_ns > self.others_ns():
            return False
        self.left_out.append(window_ns)
        self.left_out_ns += waited_ns
        self.cpu_ns_used.append(cpu_ns)
        return True

    def add_calibration(self, overhead_ns: float, cpu_ns: float) -> None:
        """Add a calibration window that followed a timed call."""
        self.overheads_during.append(overhead_ns)
        self.calibration_cpu_ns.append(cpu_ns)

    def discard(self, why: Exception, window_ns: float | None = None) -> None:
        """Discard a disturbed call; raise `why` if more than `DISCARDS_MOST` had the same reason.

        Calls that were late or slowed by the machine do not count.
        """
        self.discarded += 1
        if window_ns is not None:
            self.repeated.append(window_ns)
        self.suspicions[type(why)] += 1
        if self.suspicions[type(why)] > DISCARDS_MOST:
            raise why

    def discard_late(self, window_ns: float) -> bool:
        """Discard a call that was not queued in time; return whether calls are still queued ahead.

        After more than `LATE_MOST` they are not, and all timed calls are dropped.
        """
        self.discarded += 1
        self.late += 1
        self.repeated.append(window_ns)
        if self.late <= LATE_MOST:
            return True
        self.late = 0
        for dropped in (self.windows, self.claims, self.repeated):
            dropped.clear()
        return False

    @property
    def overhead(self) -> float:
        """The time of a window beyond the kernel's time.

        On a GPU it is measured in this candidate before it imports the submission, because each
        candidate's buffers have other addresses. The calibration windows show how the machine has
        changed since. Upward drift counts only up to three standard errors of the initial
        calibration. Otherwise a submission could slow down calibration to make its time look
        shorter.
        """
        upward_drift = min(self.drift, 3 * standard_error_of_median(self.overheads_before))
        return median(self.own_overheads if self.on_gpu else self.overheads_before) + upward_drift

    @property
    def skippable(self) -> float:
        """The part of a window that a hostile candidate could skip and compute in instead.

        On a GPU it is the time in which trusted code sends the host part of an output, with another
        switch to the candidate; the copies through pinned host memory; and for calls that are not
        queued ahead, the time of a trusted wait. On the CPU it is the CPU time that the calibration
        candidate needs beyond its kernel, less what every answer takes.
        """
        if self.on_gpu:
            host_waits_ns = median(self.host_waits_ns) if self.host_waits_ns else 0.0
            again = max(0.0, self.overhead) if self.remote or host_waits_ns else 0.0
            return host_waits_ns + again + max(0.0, self.least_wait_ns)
        if not self.calibration_cpu_ns:
            return 0.0
        needed = median(self.echo_cpu_ns) - QUICKER_ECHO_NS if self.echo_cpu_ns else 0.0
        reading = median(self.prepared_ns) if self.prepared_ns else 0.0
        return max(0.0, reading + median(self.calibration_cpu_ns) - max(0.0, needed))

    @property
    def bound(self) -> float:
        """The kernel's time by the judge's clock, at least its CPU time per thread.

        CPU time hardly depends on the machine's load, while window minus overhead can be zero on a
        busy machine.
        """
        if self.trains is not None:
            return self.trains.bound
        window = median(self.windows) - self.overhead
        return max(window, self.least_wall_ns, self.least_wait_ns)

    @property
    def choosable(self) -> float:
        """By how much a time may be too low because a candidate chose which calls did not count."""
        chosen = self.left_out + self.repeated
        if not chosen or self.trains is not None:  # trains replace the single calls
            return 0.0
        whole, kept = self.windows + chosen, self.windows
        faster = 0.0 if self.on_gpu else mean_of_faster_half(whole) - mean_of_faster_half(kept)
        return max(0.0, faster, median(whole) - median(kept))

    @property
    def reference(self) -> float | None:
        """The reference's time, measured like the kernel's; None if too many windows waited."""
        windows = self.reference_windows
        if not windows or (self.reference_waited and len(windows) < CALM_LEAST):
            return None
        return median(windows) - self.overhead

    @property
    def least_wall_ns(self) -> float:
        """The least wall time in which the threads can have used their CPU time."""
        if not self.cpu_ns_used:
            return -math.inf
        return (median(self.cpu_ns_used) - median(self.calibration_cpu_ns)) / self.threads

    @property
    def least_wait_ns(self) -> float:
        """On a GPU: the time of a call that waits for its input, as trusted calls usually take.

        A candidate that queues its work without waiting for the input gets no shorter time.
        """
        if self.claimed or not self.waiting_windows:
            return -math.inf
        return median(self.waiting_windows) - median(self.calibration_ns) - self.overhead

    @property
    def drift(self) -> float:
        """By how much calibration windows became longer after the import; may be negative."""
        return median(self.overheads_during) - median(self.overheads_before)

    def drifts(self, overhead: float) -> bool:
        """Whether the overhead of calibration windows on a GPU has changed since the import."""
        quiet = DRIFT_HOSTED_NS if self.hosted else DRIFT_MOST_NS
        most = max(quiet, DRIFT_NOISE * standard_error_of_median(self.overheads_before))
        return self.on_gpu and abs(overhead - median(self.overheads_before)) > most

    def disturbed_by(self, overhead: float) -> bool:
        """Whether a calibration window shows that something else computes on the GPU."""
        return self.on_gpu and overhead > median(self.overheads_before) + DISTURBED_NS

    @property
    def error(self) -> float:
        """The standard error of the bound."""
        if self.trains is not None:
            return self.trains.error
        parts = (self.windows, self.overheads_during, self.overheads_before, self.own_overheads)
        return math.hypot(*map(standard_error_of_median, parts))

    @property
    def trusted_error(self) -> float:
        """The part of the standard error that no submission can influence."""
        return math.hypot(
            *map(standard_error_of_median, (self.overheads_before, self.own_overheads))
        )


class DisturbedError(Exception):
    """Something other than the calibration candidate used the GPU during calibration."""

    def __init__(self, of: Round) -> None:
        super().__init__("the calibration of a round was disturbed")
        self.round = of
