"""Submissions as they are answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.api.submissions import (
    Event,
    ExclusionAnswer,
    HistoryAnswer,
    JobAnswer,
    PastSubmission,
    Place,
    Result,
    SubmissionAnswer,
)
from bot.domain.job import JobEvent
from bot.domain.moderation import Exclusion
from bot.domain.prices import Prices, cost
from bot.domain.records import HistoryEntry
from bot.domain.status import JobStatus, QueuePosition, SubmissionStatus
from bot.web.routes.api.board_bodies import board_line, time_answer


@dataclass(frozen=True, slots=True)
class Around:
    """What an answer tells beside a submission's status."""

    person: str
    task_version: int
    unserved: tuple[str, ...]
    now: datetime
    prices: Prices = field(default_factory=dict)


def submission_answer(found: SubmissionStatus, around: Around) -> SubmissionAnswer:
    """Where a submission stands."""
    submission = found.submission
    return SubmissionAnswer(
        id=submission.id,
        board=board_line(found.board, around.now),
        person_id=submission.person,
        person=around.person,
        task_version=around.task_version,
        task_version_id=submission.task_version,
        file_name=submission.file_name,
        source_hash=submission.source_hash,
        mode=submission.mode,
        gpus=submission.gpus,
        state=found.state,
        created_at=submission.created_at,
        jobs=tuple(_job(each, around.prices) for each in found.jobs),
        exclusion=_exclusion(found.exclusion),
        warning=submission.warning,
        unserved=around.unserved,
    )


def _job(status: JobStatus, prices: Prices) -> JobAnswer:
    job, evaluation = status.job, status.evaluation
    return JobAnswer(
        id=job.id,
        gpu=job.gpu,
        state=job.state,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        error=job.error,
        pool=job.pool,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        stage=status.stage,
        done=status.done,
        total=status.total,
        note=status.note,
        place=_place(status.place),
        evaluation=evaluation,
        cost=None if evaluation is None else cost(prices, job.gpu, evaluation.gpu_s),
    )


def _place(place: QueuePosition | None) -> Place | None:
    if place is None:
        return None
    return Place(
        position=place.position,
        estimate_s=place.estimate_s,
        paused=place.paused,
        running=place.running,
    )


def _exclusion(exclusion: Exclusion | None) -> ExclusionAnswer | None:
    if exclusion is None:
        return None
    return ExclusionAnswer(kind=exclusion.kind, reason=exclusion.reason)


def event_answer(event: JobEvent) -> Event:
    """One step of a job."""
    return Event(id=event.id, job=event.job, kind=event.kind, body=event.body, at=event.at)


def history_answer(entries: Sequence[HistoryEntry], limit: int) -> HistoryAnswer:
    """A page of at most `limit`; with one entry more there is a page after it."""
    shown = entries[:limit]
    more = len(entries) > limit
    return HistoryAnswer(
        submissions=tuple(_past(each) for each in shown),
        next=str(shown[-1].submission.id) if more else None,
    )


def _past(entry: HistoryEntry) -> PastSubmission:
    submission = entry.submission
    results = (
        Result(gpu=each.gpu, verdict=each.verdict, time=time_answer(each.score))
        for each in entry.results
    )
    return PastSubmission(
        id=submission.id,
        board=entry.board_name,
        board_id=submission.board,
        task_version=entry.version,
        task_version_id=submission.task_version,
        file_name=submission.file_name,
        source_hash=submission.source_hash,
        mode=submission.mode,
        gpus=submission.gpus,
        state=submission.state,
        created_at=submission.created_at,
        results=tuple(results),
    )
