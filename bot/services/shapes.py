"""The time of each benchmark of a submission, next to those of others on the same GPU type."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from bot.domain.board import Viewer
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.reference_times import Work, works
from bot.domain.scoring import ScoreValue, judged
from bot.domain.status import SubmissionStatus
from bot.domain.submission import Submission
from bot.ports import Store
from bot.services.standings import leaderboard, task_version
from runners.contract.evaluation import Evaluation

Times = Mapping[str, ScoreValue]
"""The judge's time of each benchmark, by its spec."""


@dataclass(frozen=True, slots=True)
class OtherRun:
    """What a submission is set against, and its times; the task's reference has no number."""

    name: str
    times: Times
    submission: SubmissionId | None = None


@dataclass(frozen=True, slots=True)
class Shapes:
    """The others on one GPU type, and what each benchmark needs, by its spec, if that is known."""

    rivals: tuple[OtherRun, ...] = ()
    works: Mapping[str, Work] | None = None


def times_of(evaluation: Evaluation) -> Times:
    """Return the judge's time of each benchmark that passed."""
    return {
        each.spec: judged(each.measurement)
        for each in evaluation.cases
        if each.measurement is not None
    }


async def shapes(store: Store, viewer: Viewer, shown: SubmissionStatus, gpu: str) -> Shapes:
    """Return the reference, the leader and the viewer's best that are not this submission.

    Who no longer sees the board gets none of them, not even for an own submission.
    """
    submission = shown.submission
    if not shown.board.visible_to(viewer):
        return Shapes()
    task = (await task_version(store, submission.task_version)).definition
    rivals = [each async for each in _rivals(store, viewer.person, submission, gpu) if each.times]
    return Shapes(tuple(rivals), works(task, gpu))


async def _rivals(
    store: Store, viewer: PersonId, submission: Submission, gpu: str
) -> AsyncIterator[OtherRun]:
    reference = await store.references.of(submission.task_version, gpu)
    if reference is not None and reference.submission and reference.value:
        yield OtherRun("reference", await _times(store, reference.submission, gpu))
    entries = (await leaderboard(store, submission.task_version, gpu)).entries
    own = [each for each in entries[1:] if each.score.person == viewer]
    for name, found in (("first", entries[:1]), ("your best", own)):
        for each in found:
            number = each.score.submission
            if number != submission.id:
                yield OtherRun(name, await _times(store, number, gpu), number)


async def _times(store: Store, number: SubmissionId, gpu: str) -> Times:
    return (await times_by_gpu(store, number)).get(gpu, {})


async def times_by_gpu(store: Store, number: SubmissionId) -> dict[str, Times]:
    """Return a submission's time of each benchmark on each GPU type, without asking who reads."""
    stored = await store.results.evaluations(number)
    return {each.gpu: times_of(each.evaluation) for each in stored}
