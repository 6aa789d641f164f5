"""Finals: the first entries of a leaderboard are compared, each with the one before.

They are inserted one after the other into the final order: an entry that is faster than the one
before is compared with the next one above. So every two neighbours of the final order have met.
"""

import json
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from bot.domain.confirmation import LEADS_MOST, Confirmation, level, scaled
from bot.domain.ids import BoardId, FinalId, PersonId, SubmissionId, TaskVersionId
from bot.domain.scoring import (
    Entrant,
    Outcome,
    PairRatio,
    Score,
    ScoreValue,
    Standing,
    rank_entrants,
)

LEAST_TOP, DEFAULT_TOP, MOST_TOP = 2, 10, 50
"""How many entries a final may compare."""
GROWS_MOST = 2
"""A final compares at most this many times `top` entries, if others turn out to be faster."""

Pair = tuple[SubmissionId, SubmissionId]
"""An entry and the one before, with which it is compared."""
Results = Mapping[Pair, PairRatio | None]
"""The ratio of each compared pair; None where the comparison failed each time."""


@dataclass(frozen=True, slots=True)
class FinalRow:
    """One row of a final's table; the ratio is to the entry before, None where undecided."""

    rank: int
    submission: SubmissionId
    person_name: str
    time_ns: float
    half_width_ns: float
    """Half of the 95 % interval; in older tables it includes the resolution."""
    ratio: PairRatio | None = None
    resolution_ns: float | None = 0.0

    @property
    def value(self) -> ScoreValue:
        """Its time with its uncertainty."""
        return ScoreValue(self.time_ns, self.half_width_ns, self.resolution_ns)


def without_names(rows: str, submissions: Collection[int], name: str) -> str:
    """Return a stored table in which the submitters of these submissions have this name."""
    found = json.loads(rows)
    for row in found:
        if row["submission"] in submissions:
            row["person_name"] = name
    return json.dumps(found)


@dataclass(frozen=True, slots=True)
class FinalRequest:
    """A final of the first `top` of a board, on one of its GPU types or on each."""

    board: str
    gpu: str | None = None
    top: int = DEFAULT_TOP


@dataclass(frozen=True, slots=True)
class NewFinal:
    """A final to be started on one GPU type of a board."""

    board: BoardId
    task_version: TaskVersionId
    gpu: str
    top: int
    actor: PersonId


@dataclass(frozen=True, slots=True)
class Final:
    """A stored final; `entries` is None until it starts, `rows` until it has ended."""

    id: FinalId
    board: BoardId
    task_version: TaskVersionId
    gpu: str
    top: int
    created_at: datetime
    entries: tuple[SubmissionId, ...] | None = None
    rows: tuple[FinalRow, ...] | None = None
    ended_at: datetime | None = None
    compared: int = 0
    """How many comparisons are decided."""
    comparison_s: float | None = None
    """The seconds that one of them took on average; None while none is decided."""

    @property
    def left(self) -> int:
        """How many comparisons are left at least."""
        return max(0, len(self.entries or ()) - 1 - self.compared)

    @property
    def left_s(self) -> float | None:
        """The seconds for these, if each takes as long as the decided ones did on average."""
        return None if self.comparison_s is None else self.left * self.comparison_s


@dataclass(frozen=True, slots=True)
class FinalPlace:
    """The score of an entry after a final, and its ratio to the entry before."""

    score: Score
    ratio: PairRatio | None = None


def before(final: Final, waiting: Iterable[Confirmation]) -> tuple[Confirmation, ...]:
    """Return the comparisons to make before a final begins: those of runs submitted before it.

    There are none once it has begun. Later runs wait until it has ended.
    """
    if final.entries is not None:
        return ()
    since = final.created_at
    return tuple(each for each in waiting if (each.submitted_at or since) <= since)


def next_pair(
    entries: Sequence[SubmissionId], results: Results
) -> tuple[tuple[SubmissionId, ...], Pair | None]:
    """Return the order so far, and the pair to compare next; None once all is decided."""
    order: list[SubmissionId] = []
    for entry in entries:
        place = len(order)
        while place > 0:
            pair = entry, order[place - 1]
            if pair not in results:
                return tuple(order), pair
            if not _is_faster(results[pair]):
                break
            place -= 1
        order.insert(place, entry)
    return tuple(order), None


def _is_faster(ratio: PairRatio | None) -> bool:
    return ratio is not None and ratio.outcome is Outcome.FASTER


def final_places(
    scores: Mapping[SubmissionId, Score], order: Sequence[SubmissionId], results: Results
) -> tuple[FinalPlace, ...]:
    """Return the scores after a final: each is that of the entry before times their ratio.

    The best time before the final stays as it is, within `LEADS_MOST`.
    """
    if not order:
        return ()
    places = [FinalPlace(scores[order[0]])]
    for above, entry in pairwise(order):
        places.append(_below(places[-1].score, scores[entry], _ratio_to(results, entry, above)))
    first = min(scores.values(), key=lambda each: each.value.upper_ns)
    after = next(each.score for each in places if each.score.submission == first.submission)
    # If that entry has become slow, its old time must not make all others faster.
    least = (1 - LEADS_MOST) * first.value.time_ns / places[0].score.value.time_ns
    factor = PairRatio(max(first.value.upper_ns / after.value.upper_ns, min(1.0, least)), 0.0)
    return tuple(
        replace(each, score=_with_value(each.score, scaled(each.score.value, factor, own)))
        for each in places
        for own in (each.score.value,)
    )


def _ratio_to(results: Results, entry: SubmissionId, above: SubmissionId) -> PairRatio | None:
    """Return the ratio of an entry to the one above, regardless of which was inserted later."""
    if (entry, above) in results:
        return results[entry, above]
    inverse = results.get((above, entry))
    return None if inverse is None else inverse.inverse


def _below(above: Score, own: Score, ratio: PairRatio | None) -> FinalPlace:
    """Return an entry's score given that of the one above, which it does not pass."""
    if ratio is None:
        return FinalPlace(_with_value(own, level(own.value, above.value)))
    shown = PairRatio(max(1.0, ratio.ratio), 0.0)
    return FinalPlace(_with_value(own, scaled(above.value, shown, own.value)), ratio)


def _with_value(score: Score, value: ScoreValue) -> Score:
    return replace(score, value=value)


def final_standings(
    places: Sequence[FinalPlace], results: Results, others: Iterable[Entrant]
) -> tuple[Standing, ...]:
    """Return the standings after a final; `others` are the people who are not in it.

    The results of the final replace earlier comparisons between its entries.
    """
    entries = {each.score.submission for each in places}
    inside = [Entrant(_with_results(each.score, entries, results), 1) for each in places]
    return rank_entrants([*inside, *others])


def next_entry(standings: Sequence[Standing], entries: Container[SubmissionId]) -> Standing | None:
    """Return the first standing outside of the final that is listed before the final's last entry.

    It is then compared too. So the table has the first rows of the board, and no entry falls behind
    a person with whom it was never compared.
    """
    inside = [each.score.submission in entries for each in standings]
    place = inside.index(False) if False in inside else len(inside)
    return standings[place] if True in inside[place:] else None


def final_rows(standings: Sequence[Standing], places: Sequence[FinalPlace]) -> tuple[FinalRow, ...]:
    """Return the table of a final: its places, with the ranks that they have on the board."""
    ratios = {each.score.submission: each.ratio for each in places}
    return tuple(
        FinalRow(
            rank=standing.rank,
            submission=standing.score.submission,
            person_name=standing.score.person_name,
            time_ns=standing.score.value.time_ns,
            half_width_ns=standing.score.value.half_width_ns,
            ratio=ratios[standing.score.submission],
            resolution_ns=standing.score.value.resolution_ns,
        )
        for standing in standings
        if standing.score.submission in ratios
    )


def _with_results(score: Score, entries: Container[SubmissionId], results: Results) -> Score:
    own = {rival: ratio for (one, rival), ratio in results.items() if one == score.submission}
    earlier = {rival: ratio for rival, ratio in score.met if rival not in entries}
    met = earlier | {rival: ratio for rival, ratio in own.items() if ratio is not None}
    return replace(score, met=tuple(met.items()))
