"""What became of the evaluations of one kind, counted since the first one."""

from dataclasses import dataclass

BUCKETS_S = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0)
"""Where one bucket of a duration ends and the next begins; the last one has no end.

The function `bucket_of` of the database has the same numbers."""
REFERENCE = "reference"
"""In place of a mode: the house's own, which times a task's reference."""


@dataclass(frozen=True, slots=True)
class Tally:
    """The evaluations of one GPU type, mode and verdict; times in seconds.

    `judged` counts them by how long the evaluation took, `waited` by how long its job was queued
    before its first attempt, each by bucket.
    """

    gpu: str
    mode: str
    verdict: str
    evaluations: int
    judged_s: float
    waited_s: float
    judged: tuple[int, ...]
    waited: tuple[int, ...]
