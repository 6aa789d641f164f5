"""Tells what place a finished ranked submission has won on each GPU type."""

from dataclasses import dataclass, replace

from bot.domain.ids import SubmissionId
from bot.domain.ranking import rank
from bot.domain.score import Score, ScoreValue
from bot.ports import Store
from bot.services.lookup import find_submission


@dataclass(frozen=True, slots=True)
class Placement:
    """One GPU type: the person's rank now, and whether this submission is what it rests on."""

    gpu: str
    value: ScoreValue
    rank: int
    shared: bool
    entries: int
    is_best: bool
    """Whether this is the person's fastest submission."""
    improved: bool
    """Whether the person had a slower score before."""
    reference: ScoreValue | None = None
    """The time of the task's own reference there, where it is known."""


async def placements(store: Store, submission_id: SubmissionId) -> tuple[Placement, ...]:
    """By GPU type, for those on which the submission has a score."""
    submission = await find_submission(store, submission_id)
    found = []
    for gpu in submission.gpus:
        scores = await store.results.scores(submission.task_version, gpu)
        own = next((each for each in scores if each.submission == submission_id), None)
        if own is not None:
            reference = await store.references.of(submission.task_version, gpu)
            known = None if reference is None else reference.value
            found.append(replace(_placement(own, scores), reference=known))
    return tuple(found)


def _placement(own: Score, scores: tuple[Score, ...]) -> Placement:
    standings = rank(scores)
    standing = next(each for each in standings if each.score.person == own.person)
    is_best = standing.score.submission == own.submission
    return Placement(
        gpu=own.gpu,
        value=own.value,
        rank=standing.rank,
        shared=sum(each.rank == standing.rank for each in standings) > 1,
        entries=len(standings),
        is_best=is_best,
        improved=is_best and standing.attempts > 1,
    )
