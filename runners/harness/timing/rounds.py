"""One round of timed calls: its raw windows and claims, and what they say by themselves."""

import math
from dataclasses import dataclass, field
from statistics import median

from runners.harness.timing.statistics import standard_error_of_median

DISTURBED_NS = 50_000.0
"""By how much a calibrating window on a quiet GPU is never longer than those before it: two
contexts that both work take turns of milliseconds."""
DRIFT_MOST_NS = 3_000.0
"""The most by which trusted windows during a round and before it may differ; on a quiet GPU it is
under 1,000."""
DRIFT_HOSTED_NS = 20_000.0
"""The same where a part of the input crosses to host memory in every window: at most 16,000 were
seen on a busy host, and 44,000 next to an attack that leaves copies running."""
DRIFT_NOISE = 6
"""How many standard errors of those before it may be, where that is more."""
ROUNDS_VOID_MOST = 4
"""How often a round is timed whose calibration drifts."""
BLAMED_MOST = 2
"""In how many of them the drift ends with the candidate before it is taken for its work."""
LOOKS = 20
"""How often a trusted candidate looks at most, once it is alone, until the GPU is quiet."""
DISCARDS_MOST = 10
"""How many calls of a round may be repeated: honest kernels on a busy machine need hardly one."""


@dataclass(slots=True)
class Round:
    """One fresh candidate's raw numbers, all in nanoseconds."""

    on_gpu: bool = False
    threads: int = 1
    """How many threads a kernel may use at once."""
    windows: list[float] = field(default_factory=list)
    """The judge's own clock, from the input's release to the captured output."""
    claims: list[float] = field(default_factory=list)
    """The candidate's clock: precise on a GPU, and forgeable."""
    used: list[float] = field(default_factory=list)
    """CPU time of all of the candidate's threads in each window, as the kernel counts it."""
    used_beside: list[float] = field(default_factory=list)
    """The trusted candidate's CPU time beyond its own reading, in its windows."""
    beside: list[float] = field(default_factory=list)
    """Overhead of a trusted candidate's windows, taken between the timed ones."""
    steady: list[float] = field(default_factory=list)
    """The same before the submission was imported."""
    own: list[float] = field(default_factory=list)
    """Windows of this round's own candidate before the submission was imported."""
    told: list[float] = field(default_factory=list)
    """On a GPU: how long these windows waited for what is told of an answer on the host."""
    claimed: bool = False
    """On a GPU: whether the claims are the value, since every call was queued ahead."""
    remote: bool = False
    """On a GPU: inputs and outputs go through host memory, and a window is long by that."""
    hosted: bool = False
    """On a GPU: a part of the input lies on the host."""
    discarded: int = 0
    """Calls that were repeated, since something seemed to run when all should stand still."""
    late: int = 0
    """On a GPU: calls since the last restart that were not queued in time."""

    def keep(self, window_ns: float, claimed_ns: float, cpu_ns: int) -> None:
        """Let a timed call count; its processor time is not taken on a GPU."""
        self.windows.append(window_ns)
        self.claims.append(claimed_ns)
        if not self.on_gpu:
            self.used.append(cpu_ns)

    def discard(self, why: Exception) -> None:
        """Leave out a call during which something worked; after too many there is an end."""
        self.discarded += 1
        if self.discarded > DISCARDS_MOST:
            raise why

    def restart(self) -> None:
        """Drop the timed calls, because calls are made in another way from now on."""
        self.late = 0
        self.windows.clear()
        self.claims.clear()

    @property
    def overhead(self) -> float:
        """What a window costs beyond the kernel.

        On a GPU it is what this very candidate needed before it imported the submission, because
        each candidate's buffers lie elsewhere. A trusted candidate's windows before and between
        show how the machine has changed since. Drift counts only up to three standard errors of
        the initial calibration. Otherwise a submission could slow down calibration to make its own
        time look shorter.
        """
        dearer = min(self.drift, 3 * standard_error_of_median(self.steady))
        return median(self.own if self.on_gpu else self.steady) + dearer

    @property
    def skippable(self) -> float:
        """What a hostile candidate could leave out of a window to work in its stead.

        On a GPU, where everything goes through host memory, that is the copies in both directions;
        and what the trusted candidate needs to tell what of an answer lies on the host, which the
        value holds. On the CPU it is what that one computes to answer, beyond its own reading.
        """
        if self.on_gpu:
            told = median(self.told) if self.told else 0.0
            return told + (max(0.0, self.overhead) if self.remote else 0.0)
        return max(0.0, median(self.used_beside)) if self.used_beside else 0.0

    @property
    def bound(self) -> float:
        """The kernel's time as the judge saw it: never less than its share of CPU time.

        CPU time hardly depends on what else the machine does, while a window's difference can
        come out as nothing on a busy one.
        """
        return max(median(self.windows) - self.overhead, self.busy)

    @property
    def busy(self) -> float:
        """The least wall time in which the threads could have used the CPU time that they did."""
        if not self.used:
            return -math.inf
        return (median(self.used) - median(self.used_beside)) / self.threads

    @property
    def drift(self) -> float:
        """By how much the machine changed between calibration and timing, with its sign."""
        return median(self.beside) - median(self.steady)

    def drifts(self, overhead: float) -> bool:
        """Whether what trusted windows cost on a GPU is not what they did before the import."""
        quiet = DRIFT_HOSTED_NS if self.hosted else DRIFT_MOST_NS
        most = max(quiet, DRIFT_NOISE * standard_error_of_median(self.steady))
        return self.on_gpu and abs(overhead - median(self.steady)) > most

    def disturbed_by(self, overhead: float) -> bool:
        """Whether a calibrating window on a GPU says that something else is at work there."""
        return self.on_gpu and overhead > median(self.steady) + DISTURBED_NS

    @property
    def error(self) -> float:
        """The standard error of the bound."""
        parts = (self.windows, self.beside, self.steady, self.own)
        return math.hypot(*map(standard_error_of_median, parts))

    @property
    def trusted_error(self) -> float:
        """The part of it which no submission can have a hand in."""
        return math.hypot(*map(standard_error_of_median, (self.steady, self.own)))


class DisturbedError(Exception):
    """Something other than the trusted candidate works on the GPU during calibration."""

    def __init__(self, of: Round) -> None:
        super().__init__("the calibration of a round is disturbed")
        self.round = of
