"""Orders scores into standings: the best of each person, ties as groups with a shared rank."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import PersonId
from bot.domain.score import Score, ScoreValue, Standing

TIE = 0.005
"""Two times that differ by less than this fraction share a rank, whatever their intervals say."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One person on a leaderboard: the best score, and of how many it is the best."""

    best: Score
    attempts: int


def entrants(scores: Iterable[Score]) -> tuple[Entrant, ...]:
    """Each person's fastest score; of equal ones the earlier submission."""
    everything = sorted(scores, key=in_order)
    attempts = Counter(each.person for each in everything)
    best: dict[PersonId, Score] = {}
    for each in everything:
        best.setdefault(each.person, each)
    return tuple(Entrant(each, attempts[each.person]) for each in best.values())


def rank_entrants(entered: Iterable[Entrant]) -> tuple[Standing, ...]:
    """The standings of people who are each there once; ValueError for a mixture of leaderboards.

    Ranks go 1, 1, 3: an entry belongs to a group while the group's first cannot be told from it.
    """
    ordered = sorted(entered, key=lambda each: in_order(each.best))
    if len({(each.best.board, each.best.task_version, each.best.gpu) for each in ordered}) > 1:
        raise ValueError("scores of several boards, task versions or GPU types are not comparable")
    standings: list[Standing] = []
    first: Standing | None = None
    for place, each in enumerate(ordered, start=1):
        if first is None or not ties(first.score.value, each.best.value):
            first = Standing(place, each.best, each.attempts)
            standings.append(first)
        else:
            standings.append(Standing(first.rank, each.best, each.attempts))
    return tuple(standings)


def records(scores: Iterable[Score]) -> tuple[Score, ...]:
    """The scores that were the fastest of all when they were submitted, oldest first."""
    found: list[Score] = []
    for each in sorted(scores, key=in_time):
        if not found or each.value.time_ns < found[-1].value.time_ns:
            found.append(each)
    return tuple(found)


def ties(first: ScoreValue, later: ScoreValue) -> bool:
    """Whether a later entry shares the rank of a group's first: within its interval, or 0.5 %.

    The later one's own interval does not count: a kernel that is slow now and then has as wide a
    one as it wants, and would else stand beside any that is faster.
    """
    return later.time_ns - first.time_ns <= max(first.half_width_ns, TIE * first.time_ns)


def indistinguishable(one: ScoreValue, other: ScoreValue) -> bool:
    """Whether two times differ by no more than their larger interval, or than 0.5 %."""
    resolution = max(one.half_width_ns, other.half_width_ns)
    resolution = max(resolution, TIE * min(one.time_ns, other.time_ns))
    return abs(one.time_ns - other.time_ns) <= resolution


def in_time(score: Score) -> tuple[datetime, int]:
    """Sorts scores as they were submitted."""
    return score.submitted_at, score.submission


def in_order(score: Score) -> tuple[float, datetime, int]:
    """Sorts scores as they stand: the fastest first, of equal ones the earlier submission."""
    return score.value.time_ns, score.submitted_at, score.submission
