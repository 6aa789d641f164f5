"""How a submission compares with its rival and its reference, and when a time is too noisy."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from runners.contract.verdict import Verdict
from runners.contract.wire import Wire

PAIRS_LEAST = 3
"""The minimum number of pairs of rounds; they are timed even if a usual run's time is over."""
LIMITS_OF_COMPARISON = 2 * PAIRS_LEAST
"""A comparison may take this many times the task's limits: once for each round of these pairs."""

SLOWER_MOST = 100
"""A kernel that takes more than this many times as long as the reference is timed by few calls."""

NOISY_MOST = 0.15
"""The half-width, as a fraction of the time, above which a time on the CPU is not ranked."""
NOISY_MOST_NS = 15_000.0
"""The same in ns; the larger one counts, because short times are known less precisely."""
FLOOR_NS = 1_000.0
"""The least published time in ns: a window cannot distinguish a shorter one from zero."""


def is_noisy(time_ns: float, half_width_ns: float) -> bool:
    """Whether a time on the CPU is too uncertain to be ranked."""
    return half_width_ns > max(NOISY_MOST * time_ns, NOISY_MOST_NS)


def is_unseen(time_ns: float, resolution_ns: float) -> bool:
    """Whether the judge's clock saw nothing of a kernel on the CPU, and may have missed it all."""
    return time_ns <= min(FLOOR_NS, resolution_ns)


class Ratio(Wire):
    """How long the submission takes compared with its rival or its reference in one benchmark."""

    ratio: Annotated[float, Field(gt=0)]
    """Time of the submission / time of the other, both by the judge's own clock."""
    half_width: Annotated[float, Field(ge=0)]
    """Half-width of the 95 % interval of `ratio`, plus `unseen`."""
    unseen: Annotated[float, Field(ge=0, exclude_if=lambda unseen: not unseen)] = 0.0
    """In a comparison: how much of `ratio` the faster one can have hidden."""
    rounds: Annotated[int, Field(ge=2)]
    """How many rounds of both were timed."""

    @property
    def is_tie(self) -> bool:
        """Whether the interval contains 1, so that neither is faster."""
        return abs(self.ratio - 1) <= self.half_width


class Comparison(Wire):
    """The result of comparing a submission with the rival of its request."""

    benchmarks: tuple[Ratio, ...] = ()
    """One for each benchmark, in order; empty unless both submissions passed."""
    rival_verdict: Verdict
    """How the rival's rounds ended; `passed` if none had failed when the submission failed."""
    rival_detail: str = ""
    """Why the rival failed; only for admins, because it may contain secret inputs."""

    @property
    def rival_failed(self) -> bool:
        """Whether the rival failed; nothing need then be timed, if its answer ended the judge."""
        return self.rival_verdict is not Verdict.PASSED

    @model_validator(mode="after")
    def _a_failed_rival_has_no_ratios(self) -> Self:
        if self.benchmarks and self.rival_failed:
            raise ValueError("a rival that failed has no ratios")
        return self
