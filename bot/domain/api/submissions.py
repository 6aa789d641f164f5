"""Submissions: how one is handed in, followed and read."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from bot.domain.acceptance import MAX_SOURCE_BYTES
from bot.domain.api.base import GpuName, Reason, RequestBody, ResponseBody, Time
from bot.domain.api.boards import BoardLine
from bot.domain.job import JobState
from bot.domain.moderation import ExclusionKind
from bot.domain.submission import SubmissionState
from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode
from runners.contract.verdict import Verdict


class OrderFields(RequestBody):
    """What is to become of a file; without board or GPU types its heading names them."""

    mode: Mode
    board: Annotated[str, StringConstraints(max_length=200)] | None = None
    gpus: Annotated[tuple[GpuName, ...], Field(max_length=64)] = ()


class SubmissionOrder(OrderFields):
    """A file to hand in, with what is to become of it."""

    file_name: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    source: Annotated[str, StringConstraints(max_length=MAX_SOURCE_BYTES)]


class Again(RequestBody):
    """In which mode an earlier submission is run again; None means its own."""

    mode: Mode | None = None


class Withdrawal(RequestBody):
    """Why a submission goes off its board."""

    reason: Reason = ""


class Numbered(ResponseBody):
    """A submission by its number."""

    id: int


class Cancelled(ResponseBody):
    """How many jobs of a submission had not ended."""

    stopped: int


class QueuePositionBody(ResponseBody):
    """A queued job's place, from 1, and about how long until it ends; None: nobody knows."""

    position: int
    estimate_s: float | None
    paused: str | None
    """Why no jobs of this GPU type begin at the moment."""
    running: int = 0
    """How many jobs of this GPU type run now."""


class JobAnswer(ResponseBody):
    """One submission on one GPU type: its place while it waits, its evaluation at the end."""

    id: int
    gpu: str
    state: JobState
    attempt: int
    max_attempts: int
    error: str | None
    """What went wrong on our side in the latest attempt."""
    pool: str = ""
    """The pool that alone may time it, as the board's creator said; empty: any."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    stage: str | None
    done: int
    """Of `total` cases of the stage."""
    total: int
    note: str
    place: QueuePositionBody | None
    evaluation: Evaluation | None
    """Of ranked runs nothing secret is in it."""
    cost: float | None = None
    """Of the GPU seconds of its evaluation; None where no price of the GPU type is set."""


class ExclusionAnswer(ResponseBody):
    """Why a submission is not ranked whatever its result is."""

    kind: ExclusionKind
    reason: str


class ProfileFile(ResponseBody):
    """A file that a profile left; its bytes are at `.../files/GPU/NAME`."""

    gpu: str
    name: str


class ProfileFiles(ResponseBody):
    """Every file that a profile left; none of any other mode."""

    files: tuple[ProfileFile, ...]


class SubmissionAnswer(ResponseBody):
    """Where a submission stands, and how it ended."""

    id: int
    board: BoardLine
    person_id: int
    person: str
    task_version: int
    task_version_id: int
    file_name: str
    source_hash: str
    """SHA-256 of the submitted text."""
    mode: Mode
    gpus: tuple[str, ...]
    state: SubmissionState
    created_at: datetime
    jobs: tuple[JobAnswer, ...]
    exclusion: ExclusionAnswer | None
    warning: str = ""
    """Why the file may be no valid Python; the judge's verdict says for certain."""
    unserved: tuple[str, ...]
    """The GPU types for which it waits although nobody is there to judge it."""


class JobResultBody(ResponseBody):
    """How a submission ended on one GPU type; only a passed ranked one has a time."""

    gpu: str
    verdict: Verdict
    time: Time | None


class PastSubmission(ResponseBody):
    """One line of one's own history."""

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


class HistoryAnswer(ResponseBody):
    """One's own submissions, newest first; `next` is the cursor of the page after this one."""

    submissions: tuple[PastSubmission, ...]
    next: str | None


class SourceAnswer(ResponseBody):
    """A submitted file."""

    submission: int
    file_name: str
    text: str


class Event(ResponseBody):
    """One step of a job; `kind` is a state or a stage, `id` what a watcher resumes from."""

    id: int
    job: int
    kind: str
    body: dict[str, str | int]
    at: datetime
