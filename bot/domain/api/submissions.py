"""Bodies for submitting, following and reading submissions."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.api.base import GpuName, Reason, RequestBody, ResponseBody, Time, time_of
from bot.domain.api.boards import BoardLine
from bot.domain.api.finals import ConfirmationBody, LostPlaceBody
from bot.domain.confirmation import ConfirmationState
from bot.domain.job import JobEvent, JobState
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.status import JobStatus, QueuePosition
from bot.domain.submission import ExclusionKind, SubmissionState
from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Verdict


class OrderFields(RequestBody):
    """How to run a file; a missing board or GPU type comes from its header."""

    mode: Mode
    board: Annotated[str, StringConstraints(max_length=200)] | None = None
    gpus: Annotated[tuple[GpuName, ...], Field(max_length=64)] = ()


class SubmissionOrder(OrderFields):
    """A file to submit, and how to run it."""

    file_name: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    source: Annotated[str, StringConstraints(max_length=MAX_SOURCE_BYTES)]


class RerunOrder(RequestBody):
    """The mode in which to run an earlier submission again; None means its own."""

    mode: Mode | None = None


class Withdrawal(RequestBody):
    """Why a submission is taken off its board."""

    reason: Reason = ""


class SubmissionNumber(ResponseBody):
    """A submission's number."""

    id: int


class Cancelled(ResponseBody):
    """How many unfinished jobs of a submission were cancelled."""

    stopped: int


class QueuePositionBody(ResponseBody):
    """A queued job's position, from 1, and the estimated seconds until it ends; None: unknown."""

    position: int
    estimate_s: float | None
    paused: str | None
    """Why no jobs on this GPU type are started now."""
    running: int = 0
    """How many jobs on this GPU type run now."""

    @classmethod
    def of(cls, place: QueuePosition | None) -> "QueuePositionBody | None":
        """Return a position, if there is one."""
        return None if place is None else cls(**asdict(place))


class JobAnswer(ResponseBody):
    """One submission on one GPU type: its position while queued, its evaluation at the end."""

    id: int
    gpu: str
    state: JobState
    attempt: int
    max_attempts: int
    error: str | None
    """The internal error of the latest attempt, or that an admin cancelled the job, and why."""
    pool: str = ""
    """The only pool that may time it, set by the board's creator; empty: any."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stage: str | None
    done: int
    """How many of the stage's `total` cases are done."""
    total: int
    note: str
    place: QueuePositionBody | None
    evaluation: Evaluation | None
    """Without the secret inputs of ranked runs."""
    cost: float | None = None
    """The cost of its GPU seconds in dollars; None when the GPU type has no price."""
    confirmation: ConfirmationBody | None = None
    """Its comparison with the holder of one of the first places; None if it needs none."""
    waits: str = ""
    """The quota of GPU time that it waits for, in words; empty: none."""
    lost_place: LostPlaceBody | None = None
    """Who took one of the first places from it; None if none was lost."""
    ranks: Time | None = None
    """The time that ranks, if it follows from comparisons; null: that of the run itself."""

    @classmethod
    def of(cls, status: JobStatus) -> "JobAnswer":
        """Return the status of a job."""
        job = status.job
        return cls(
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
            place=QueuePositionBody.of(status.place),
            evaluation=status.evaluation,
            cost=status.cost,
            confirmation=ConfirmationBody.of(status.confirmation),
            waits=job.waits,
            lost_place=LostPlaceBody.of(status.lost),
            ranks=time_of(status.ranks),
        )


class ExclusionAnswer(ResponseBody):
    """Why a submission is not ranked, regardless of its result."""

    kind: ExclusionKind
    reason: str


class ProfileFile(ResponseBody):
    """A file of a profile; its bytes are at `.../files/GPU/NAME`."""

    gpu: str
    name: str


class ProfileFiles(ResponseBody):
    """Every file of a profile; empty in other modes."""

    files: tuple[ProfileFile, ...]


class SubmissionAnswer(ResponseBody):
    """The status of a submission, and its result."""

    id: int
    url: str = ""
    """Its address at this server, such as `/api/v1/submissions/17`; empty from older servers."""
    board: BoardLine
    person_id: int
    person: str
    task_version: int
    task_version_id: int
    file_name: str
    source_hash: str
    """SHA-256 of the source."""
    mode: Mode
    gpus: tuple[str, ...]
    state: SubmissionState
    created_at: datetime
    jobs: tuple[JobAnswer, ...]
    exclusion: ExclusionAnswer | None
    warning: str = ""
    """Why the file may be invalid Python; only the judge's verdict is certain."""
    source_statement: str = ""
    """Who may read the source, as it was stated to the person who submitted it."""
    unserved: tuple[str, ...]
    """The GPU types for which it waits without any live worker."""


class JobResultBody(ResponseBody):
    """A submission's result on one GPU type; only a passed ranked one has a time.

    One on the CPU whose time is too noisy to be ranked has none either.
    """

    gpu: str
    verdict: Verdict
    time: Time | None
    confirmation: ConfirmationState | None = None
    """How its last comparison with the holder of a place ended; `pending` runs have no time yet."""
    lost_to: int | None = None
    """The submission that took one of the first places from it."""
    exclusion: ExclusionKind | None = None
    """Why it is no longer ranked."""
    too_noisy: bool = False
    """Whether it passed, but its time is too noisy to be ranked."""

    @classmethod
    def of(cls, result: JobResult) -> "JobResultBody":
        """Return a result."""
        return cls(
            gpu=result.gpu,
            verdict=result.verdict,
            time=time_of(result.score),
            confirmation=result.confirmation,
            lost_to=result.lost_to,
            exclusion=result.exclusion,
            too_noisy=result.noisy,
        )


class PastSubmission(ResponseBody):
    """One line of the caller's own history."""

    id: int
    board: str
    board_id: int
    task_version: int
    task_version_id: int
    file_name: str
    source_hash: str
    mode: Mode
    gpus: tuple[str, ...]
    state: SubmissionState
    created_at: datetime
    results: tuple[JobResultBody, ...]

    @classmethod
    def of(cls, entry: HistoryEntry) -> "PastSubmission":
        """Return one submission of a history."""
        submission = entry.submission
        return cls(
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
            results=tuple(map(JobResultBody.of, entry.results)),
        )


class HistoryAnswer(ResponseBody):
    """The caller's own submissions, newest first; `next` is the next page's cursor."""

    submissions: tuple[PastSubmission, ...]
    next: str | None

    @classmethod
    def of(cls, entries: Sequence[HistoryEntry], limit: int) -> "HistoryAnswer":
        """Return a page of at most `limit`; an extra entry means that there is a next page."""
        shown, more = entries[:limit], len(entries) > limit
        return cls(
            submissions=tuple(map(PastSubmission.of, shown)),
            next=str(shown[-1].submission.id) if more else None,
        )


class SourceAnswer(ResponseBody):
    """A submitted file."""

    submission: int
    file_name: str
    text: str


class Event(ResponseBody):
    """One step of a job; `kind` is a state or a stage; a watcher resumes after `id`."""

    id: int
    job: int
    kind: str
    body: dict[str, str | int]
    at: datetime

    @classmethod
    def of(cls, event: JobEvent) -> "Event":
        """Return a step."""
        return cls(id=event.id, job=event.job, kind=event.kind, body=event.body, at=event.at)
