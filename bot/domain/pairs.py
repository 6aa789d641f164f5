"""Ratios of two submissions that were timed in turns, and what a chain of them says."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.domain.ids import SubmissionId


class Outcome(StrEnum):
    """What a comparison of two submissions says of the first."""

    FASTER = "faster"
    TIED = "tied"
    """The interval of the ratio contains 1."""
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class PairRatio:
    """The time of a submission divided by that of a rival, with half of its 95 % interval.

    Both were timed in turns on one card, so it does not contain what the judge's clock cannot see.
    """

    ratio: float
    half_width: float

    @property
    def outcome(self) -> Outcome:
        """What it says of the submission."""
        if abs(self.ratio - 1.0) <= self.half_width:
            return Outcome.TIED
        return Outcome.FASTER if self.ratio < 1.0 else Outcome.SLOWER

    @property
    def inverse(self) -> "PairRatio":
        """The ratio of the rival to the submission."""
        return PairRatio(1.0 / self.ratio, self.half_width / self.ratio**2)

    def times(self, other: "PairRatio") -> "PairRatio":
        """Return the ratio to the rival of the rival, which `other` has."""
        ratio = self.ratio * other.ratio
        parts = self.half_width / self.ratio, other.half_width / other.ratio
        return PairRatio(ratio, ratio * math.hypot(*parts))


Met = tuple[tuple[SubmissionId, PairRatio], ...]
"""The rivals with which a submission was compared, oldest first."""
_Ratios = Mapping[tuple[SubmissionId, SubmissionId], PairRatio]


def connected(met: Mapping[SubmissionId, Met]) -> _Ratios:
    """Return the ratio of every two submissions that comparisons connect, in both directions.

    `met` has the comparisons of each; rivals that are not in it do not count.
    """
    direct: dict[tuple[SubmissionId, SubmissionId], PairRatio] = {}
    for submission, rivals in met.items():
        for rival, ratio in rivals:
            if rival in met:
                direct[submission, rival] = ratio
                direct[rival, submission] = ratio.inverse
    neighbours: dict[SubmissionId, list[SubmissionId]] = {}
    for one, other in direct:
        neighbours.setdefault(one, []).append(other)
    return dict(found for one in neighbours for found in _reached(one, neighbours, direct))


def _reached(
    start: SubmissionId, neighbours: Mapping[SubmissionId, list[SubmissionId]], direct: _Ratios
) -> Iterator[tuple[tuple[SubmissionId, SubmissionId], PairRatio]]:
    """Yield the ratio to each submission that comparisons connect, over the shortest way."""
    known, last = {start: PairRatio(1.0, 0.0)}, [start]
    while last:
        reached: list[SubmissionId] = []
        for one in last:
            for other in neighbours[one]:
                if other not in known:
                    known[other] = known[one].times(direct[one, other])
                    reached.append(other)
        last = reached
    yield from (((start, other), ratio) for other, ratio in known.items() if other != start)
