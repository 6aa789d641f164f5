"""Competitions: sets of boards with one overall ranking, and how ranks become points."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from bot.domain.board import Board, Viewer
from bot.domain.ids import BoardId, CompetitionId, PersonId
from bot.domain.scoring import Standing

LONGEST_NAME = 100
"""The most characters of a competition's name; a longer one is cut."""
FULL_POINTS = 100.0
"""The points of the best time on a leaderboard, unless the competition lists them by rank."""
_DECIMALS = 2
"""Points are rounded, so that people with the same points in the report share a rank."""


@dataclass(frozen=True, slots=True)
class PointsRule:
    """How the standings of one board on one GPU type become points.

    `ranks` has the points of the first places. If it is empty, everyone gets 100 x best / own time,
    both at the upper ends of their intervals. People who share a rank have the same points.
    """

    ranks: tuple[float, ...] = ()

    def points(self, standings: Sequence[Standing]) -> dict[PersonId, float]:
        """Return the points of each ranked person."""
        points: dict[PersonId, float] = {}
        best = min((each.score.value.upper_ns for each in standings), default=0.0)
        for _, sharing in groupby(standings, key=lambda each: each.rank):
            group = list(sharing)
            if self.ranks:
                each_gets = self._of_places(len(points), len(group))
            else:
                own = min(each.score.value.upper_ns for each in group)
                each_gets = round(FULL_POINTS * best / own, _DECIMALS)
            points |= {each.score.person: each_gets for each in group}
        return points

    def _of_places(self, before: int, count: int) -> float:
        """Return the mean points of the `count` places after the first `before` ones.

        A shared rank takes as many places as people share it. Places beyond the list have 0 points.
        """
        return round(math.fsum(self.ranks[before : before + count]) / count, _DECIMALS)


@dataclass(frozen=True, slots=True)
class NewCompetition:
    """A competition to store; its boards exist, in order."""

    name: str
    creator: PersonId
    description: str
    points: PointsRule
    opens_at: datetime
    boards: tuple[BoardId, ...]


@dataclass(frozen=True, slots=True)
class Competition:
    """A stored competition with its boards, in order."""

    id: CompetitionId
    name: str
    creator: PersonId
    description: str
    points: PointsRule
    opens_at: datetime
    boards: tuple[Board, ...]
    opening_announced: datetime | None = None
    """The opening date that has been announced."""
    closing_announced: datetime | None = None
    """The closing date that has been announced."""

    @property
    def closes_at(self) -> datetime | None:
        """Return when its last board closes; None while a board has no deadline."""
        deadlines = [each.deadline for each in self.boards]
        return max((each for each in deadlines if each), default=None) if all(deadlines) else None

    def has_opened(self, now: datetime) -> bool:
        """Return whether everyone may see its boards at the aware time `now`."""
        return self.opens_at <= now

    def has_closed(self, now: datetime) -> bool:
        """Return whether no board accepts ranked submissions any more at the aware time `now`."""
        return self.closes_at is not None and self.closes_at < now

    def belongs_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may change it and see it before it opens."""
        return viewer.sees_all or viewer.person == self.creator

    def announced_to(self, viewer: Viewer) -> bool:
        """Return whether the viewer may know its name and dates, as for one of its boards."""
        return self.belongs_to(viewer) or any(each.announced_to(viewer) for each in self.boards)


@dataclass(frozen=True, slots=True)
class OverallEntry:
    """A person in the overall ranking, with their points in total and by leaderboard."""

    rank: int
    person: PersonId
    person_name: str
    total: float
    points: tuple[float | None, ...]
    """In the order of the leaderboards; None where the person is not ranked, which counts as 0."""


@dataclass(frozen=True, slots=True)
class CompetitionStandings:
    """A competition as a viewer sees it; without boards and entries until it opens to them."""

    competition: Competition
    leaderboards: tuple[tuple[Board, str], ...]
    """Each board that the viewer sees, on each of its GPU types."""
    entries: tuple[OverallEntry, ...]


def rank_overall(
    leaderboards: Sequence[Sequence[Standing]], rule: PointsRule
) -> tuple[OverallEntry, ...]:
    """Return everyone who is ranked on a leaderboard, the most points first.

    Equal totals share a rank: 1, 1, 3.
    """
    points = [rule.points(each) for each in leaderboards]
    names = {each.score.person: each.score.person_name for board in leaderboards for each in board}
    rows = {person: tuple(each.get(person) for each in points) for person in names}
    totals = {
        person: round(math.fsum(each or 0.0 for each in row), _DECIMALS)
        for person, row in rows.items()
    }
    ordered = sorted(totals, key=lambda person: (-totals[person], names[person], person))
    ranks: dict[float, int] = {}
    for place, person in enumerate(ordered, start=1):
        ranks.setdefault(totals[person], place)
    return tuple(
        OverallEntry(ranks[totals[each]], each, names[each], totals[each], rows[each])
        for each in ordered
    )
