"""Totals of evaluations of one kind, since the first one."""

from dataclasses import dataclass

BUCKETS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""The upper bounds of the buckets of a duration; the last bucket has none.

The database function `bucket_of` has the same numbers.
"""
REFERENCE = "reference"
"""Stands for the mode of the system's own submissions, which time a task's reference."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The evaluations of one GPU type, mode and verdict; times in seconds.

    `judged` counts them by duration of the evaluation, `waited` by time in the queue before the
    first attempt, each by bucket.
    """

    gpu: str
    mode: str
    verdict: str
    evaluations: int
    judged_s: float
    waited_s: float
    judged: tuple[int, ...]
    waited: tuple[int, ...]
