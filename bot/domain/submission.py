"""A submission, its idempotency key, and where a door shows it."""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from runners.contract.profile import ProfileOptions
from runners.contract.task import Mode

KEPT = timedelta(hours=24)
"""For how long a key stands for the submission that it was first sent with."""
LONGEST_KEY = 200
_BARE = rf"[!#-\[\]-~]{{1,{LONGEST_KEY}}}"
KEY_PATTERN = f'^("{_BARE}"|{_BARE})$'
"""Printable ASCII but quote, backslash and space; as RFC 8941 has strings, or without quotes."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A key of one person, and by what another submission with the same key is told apart."""

    key: str
    digest: str


def key_of(text: str) -> str:
    """The key in the value of an `Idempotency-Key` header; UserError `bad-key` when it is none."""
    if not re.fullmatch(KEY_PATTERN, text):
        raise UserError(
            "bad-key",
            f"this is no key; send 1 to {LONGEST_KEY} letters, digits or signs, such as a new UUID",
        )
    return text.strip('"')


def reused(key: str) -> UserError:
    """The refusal of a key that came with another submission before."""
    return UserError(
        "key-reused",
        f"the key {key!r} came with another submission within {KEPT.total_seconds() / 3600:.0f} h; "
        "repeat that one as it was, or send a new key",
    )


@dataclass(frozen=True, slots=True)
class NewDisplay:
    """A door that will show a submission; `place` is the door's own text, such as a channel."""

    door: str
    place: str


@dataclass(frozen=True, slots=True)
class Display:
    """A submission that a door has not shown to its end."""

    submission: SubmissionId
    person: PersonId
    door: str
    place: str
    claims: int
    """How often a process has taken it up."""


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
    def once(self) -> IdempotencyKey | None:
        """The key with a digest of everything that is asked for."""
        if self.key is None:
            return None
        content = hashlib.sha256(self.content).hexdigest()
        asked = self.file_name, content, self.mode.value, self.board, self.gpus
        return IdempotencyKey(self.key, hashlib.sha256(json.dumps(asked).encode()).hexdigest())


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
    once: IdempotencyKey | None = None
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
