"""Orders scores into standings: the best of each person, ties as groups with a shared rank."""

from collections import Counter
from collections.abc import Iterable

from bot.domain.ids import PersonId
from bot.domain.score import Score, ScoreValue, Standing

TIE = 0.005
"""Two times that differ by less than this fraction share a rank, whatever their intervals say."""


def rank(scores: Iterable[Score]) -> tuple[Standing, ...]:
    """The standings of one task version on one GPU type; ValueError for a mixture.

    Ranks go 1, 1, 3: an entry belongs to a group while it cannot be told from the group's first.
    """
    everything = tuple(scores)
    if len({(each.board, each.task_version, each.gpu) for each in everything}) > 1:
        raise ValueError("scores of several boards, task versions or GPU types are not comparable")
    attempts = Counter(each.person for each in everything)
    standings: list[Standing] = []
    first: Standing | None = None
    for place, entry in enumerate(_best_of_each(everything), start=1):
        if first is None or not indistinguishable(first.score.value, entry.value):
            first = Standing(place, entry, attempts[entry.person])
            standings.append(first)
        else:
            standings.append(Standing(first.rank, entry, attempts[entry.person]))
    return tuple(standings)


def records(scores: Iterable[Score]) -> tuple[Score, ...]:
    """The scores that were the fastest of all when they were submitted, oldest first."""
    found: list[Score] = []
    for each in sorted(scores, key=lambda score: (score.submitted_at, score.submission)):
        if not found or each.value.time_ns < found[-1].value.time_ns:
            found.append(each)
    return tuple(found)


def indistinguishable(one: ScoreValue, other: ScoreValue) -> bool:
    """Whether two times differ by no more than their larger interval, or than 0.5 %."""
    resolution = max(one.half_width_ns, other.half_width_ns)
    resolution = max(resolution, TIE * min(one.time_ns, other.time_ns))
    return abs(one.time_ns - other.time_ns) <= resolution


def _best_of_each(scores: Iterable[Score]) -> list[Score]:
    """Each person's fastest score, fastest first; of equal ones the earlier submission."""
    best: dict[PersonId, Score] = {}
    for each in sorted(scores, key=_order):
        best.setdefault(each.person, each)
    return list(best.values())


def _order(score: Score) -> tuple[float, float, int]:
    return score.value.time_ns, score.submitted_at.timestamp(), score.submission
