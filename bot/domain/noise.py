"""Decides which passed runs on the CPU have times that are too uncertain to be ranked.

One of which the judge's clock saw nothing is one of them. Of a longer time the clock may miss much
too, but that is in its resolution, so such runs share ranks.
"""

import math

from runners.contract.comparison import is_noisy, is_unseen
from runners.contract.evaluation import CPU, CaseResult, Evaluation, Measurement, StopReason
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

TOO_NOISY = "passed, but too noisy to be ranked"


def too_noisy(evaluation: Evaluation) -> tuple[CaseResult, ...]:
    """Return the benchmarks of a ranked run on the CPU whose times are too uncertain to be ranked.

    Benchmarks that the task itself timed never are. Those that are far slower than the reference
    are only if the judge's clock saw nothing of their fast calls.
    """
    if evaluation.mode is not Mode.RANKED or evaluation.gpu != CPU:
        return ()
    return tuple(case for case in evaluation.cases if case.measurement and _noisy(case.measurement))


def passed_too_noisy(evaluation: Evaluation) -> bool:
    """Whether a ranked run passed but is not ranked, because its times are too uncertain."""
    return evaluation.verdict is Verdict.PASSED and bool(too_noisy(evaluation))


def noise_of(measured: Measurement) -> float:
    """Return the half-width as a fraction of the time, or of the ratio to the reference if known.

    By that ratio runs on the CPU are ranked. It is infinite if the ratio should be known but is
    not: a time by itself cannot be compared with times that the ratio gives.
    """
    if measured.reference_missed:
        return math.inf
    if measured.vs_reference is not None:
        return measured.vs_reference.half_width / measured.vs_reference.ratio
    return measured.half_width_ns / measured.time_ns


def _noisy(found: Measurement) -> bool:
    by_judge = found.claimed_ns is None and found.stop_reason is not StopReason.TASK
    noisy = is_noisy(found.time_ns, noise_of(found) * found.time_ns)
    noisy = noisy and found.stop_reason is not StopReason.SLOW
    return by_judge and (noisy or is_unseen(found.time_ns, found.resolution_ns))
