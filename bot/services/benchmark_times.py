"""The time of each benchmark of a submission, next to those of others on the same GPU type."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from bot.domain.board import Viewer
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.reference_times import Work, work_by_spec
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
    """A run that a submission is compared with; `submission` is None for the task's reference."""

    name: str
    times: Times
    submission: SubmissionId | None = None


@dataclass(frozen=True, slots=True)
class OtherTimes:
    """The other runs on one GPU type, and the work of each benchmark, by its spec, if known."""

    others: tuple[OtherRun, ...] = ()
    work: Mapping[str, Work] | None = None


def times_of(evaluation: Evaluation) -> Times:
    """Return the judge's time of each benchmark that passed."""
    return {
        each.spec: judged(each.measurement)
        for each in evaluation.cases
        if each.measurement is not None
    }


async def other_times(
    store: Store, viewer: Viewer, shown: SubmissionStatus, gpu: str
) -> OtherTimes:
    """Return the times of the reference, the leader and the viewer's best, if they are other runs.

    A viewer who no longer sees the board gets none, not even for their own submission.
    """
    submission = shown.submission
    if not shown.board.visible_to(viewer):
        return OtherTimes()
    task = (await task_version(store, submission.task_version)).definition
    others = [each async for each in _others(store, viewer.person, submission, gpu) if each.times]
    return OtherTimes(tuple(others), work_by_spec(task, gpu))


async def _others(
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
    """Return a submission's times by GPU type; the caller checks what the viewer may see."""
    stored = await store.results.evaluations(number)
    return {each.gpu: times_of(each.evaluation) for each in stored}
