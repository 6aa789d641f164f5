"""Scores over many results: fast_p, the geometric mean of speed-ups, pass@k."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def fast_p(results: Sequence[Mapping[str, Any]], p: float) -> float:
    """The share of results that are right and more than `p` times as fast as the reference.

    KernelBench compares strictly. With `p` 0 every right result counts that was timed.
    """
    if not results:
        raise ValueError("fast_p of no results")
    return sum(_speedup_of(each) > p for each in results) / len(results)


def geometric_mean(values: Iterable[float | None]) -> float | None:
    """The geometric mean of the speed-ups that are there; None where there are none."""
    logs = [math.log(value) for value in values if value is not None]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def pass_at_k(tries: int, right: int, k: int) -> float:
    """The chance that one of `k` of these tries is right, without bias (Chen et al. 2021)."""
    if not 0 <= right <= tries or not 1 <= k <= tries:
        raise ValueError(f"pass@{k} of {tries} tries with {right} right ones has no meaning")
    if tries - right < k:
        return 1.0
    return 1.0 - math.comb(tries - right, k) / math.comb(tries, k)


def _speedup_of(result: Mapping[str, Any]) -> float:
    found = result["speedup"]
    return float(found) if result["correctness"] and found is not None else 0.0
