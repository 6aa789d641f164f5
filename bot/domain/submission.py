"""A submission on its way from a door into the store."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.access import Viewer
from bot.domain.display import NewDisplay
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.once import Once
from runners.contract.profile import ProfileOptions
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """What a door was handed, unchecked; no board or GPU means that the heading names them."""

    viewer: Viewer
    """Who submits: a board that this viewer may not see does not take it."""
    file_name: str
    content: bytes
    mode: Mode
    board: str | None = None
    gpus: tuple[str, ...] = ()
    display: NewDisplay | None = None
    key: str | None = None
    """Whatever comes again with this key is the same submission."""
    profile: ProfileOptions | None = None
    """What is asked of the profiler, in mode `profile`."""

    @property
    def once(self) -> Once | None:
        """The key with a digest of everything that is asked for."""
        if self.key is None:
            return None
        content = hashlib.sha256(self.content).hexdigest()
        asked = self.file_name, content, self.mode.value, self.board, self.gpus
        return Once(self.key, hashlib.sha256(json.dumps(asked).encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class NewSubmission:
    """An accepted submission that is about to be stored with one job per GPU."""

    person: PersonId
    board: BoardId
    task_version: TaskVersionId
    file_name: str
    source: str
    mode: Mode
    gpus: tuple[str, ...]
    priority: int
    max_attempts: int = 3
    display: NewDisplay | None = None
    judged_again: bool = False
    """An admin asked for it: neither bans nor limits hold for it, and no limit counts it."""
    once: Once | None = None
    profile: ProfileOptions | None = None
    warning: str = ""
    """What its person should know of it; see `Submission`."""


class SubmissionState(StrEnum):
    """Where a submission stands, taken over all its jobs."""

    QUEUED = "queued"
    """No job has started."""
    RUNNING = "running"
    """A job runs, or some have ended and some have not."""
    FINISHED = "finished"
    """Every job ended with an evaluation."""
    FAILED = "failed"
    """Some job was given up, through no fault of the submission."""
    CANCELLED = "cancelled"
    """The person stopped it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A stored submission; its source is kept once per hash."""

    id: SubmissionId
    person: PersonId
    board: BoardId
    task_version: TaskVersionId
    file_name: str
    source_hash: str
    mode: Mode
    gpus: tuple[str, ...]
    state: SubmissionState
    created_at: datetime
    profile: ProfileOptions | None = None
    warning: str = ""
    """Why it may be no valid Python, where the door could not tell for certain."""
