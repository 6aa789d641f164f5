"""A submission, its idempotency key, and what prevents it from being accepted or ranked."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from bot.domain.board import SourceVisibility, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.times import show_deadline, show_span
from runners.contract.evaluation import ProfileOptions
from runners.contract.task import Mode

KEY_TTL = timedelta(hours=24)
"""How long a key refers to the submission that it was first sent with."""
LONGEST_KEY = 200
_BARE = rf"[!#-\[\]-~]{{1,{LONGEST_KEY}}}"
KEY_PATTERN = f'^("{_BARE}"|{_BARE})$'
"""Printable ASCII except quote, backslash and space, as a quoted string of RFC 8941 or bare."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A person's key, with a digest that distinguishes other submissions with the same key."""

    key: str
    digest: str


def key_of(text: str) -> str:
    """Return the key in an `Idempotency-Key` header; UserError `bad-key` when it is invalid."""
    if not re.fullmatch(KEY_PATTERN, text):
        raise UserError(
            "bad-key",
            f"this is not a valid Idempotency-Key; send 1 to {LONGEST_KEY} letters, digits or "
            "punctuation characters, such as a new UUID",
        )
    return text.strip('"')


def key_reused(key: str) -> UserError:
    """Return the refusal of a key that came with another submission before."""
    return UserError(
        "key-reused",
        f"the key {key!r} came with another submission within "
        f"{KEY_TTL.total_seconds() / 3600:.0f} h; "
        "repeat that submission unchanged, or use a new key",
    )


@dataclass(frozen=True, slots=True)
class NewDisplay:
    """A front end that will show a submission; `place` is its own text, such as a channel."""

    door: str
    place: str


@dataclass(frozen=True, slots=True)
class Display:
    """A submission that a front end has not finished showing."""

    submission: SubmissionId
    person: PersonId
    door: str
    place: str
    claims: int
    """How often a process has claimed it."""


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """Whether a request is done, and the token with which its answer may still be edited."""

    done: bool = True
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class UntoldOutcome:
    """What one person could not be sent; it contains no secret."""

    addressee: str
    said: str


@dataclass(frozen=True, slots=True)
class ThreadKey:
    """The thread in which a front end shows a board's runs, in one guild.

    It is the private thread of `person`; without a person, the board's public thread.
    """

    door: str
    guild: str
    board: BoardId
    person: PersonId | None = None


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """An unchecked request of a front end; a missing board or GPU type is that of the header."""

    viewer: Viewer
    """Who submits; the board must be visible to them."""
    file_name: str
    content: bytes
    mode: Mode
    board: str | None = None
    gpus: tuple[str, ...] = ()
    display: NewDisplay | None = None
    key: str | None = None
    """Requests with the same key are the same submission."""
    profile: ProfileOptions | None = None
    """The options of the profiler, in mode `profile`."""

    @property
    def idempotency_key(self) -> IdempotencyKey | None:
        """Return the key with a digest of the file, the mode, the board and the GPU types."""
        if self.key is None:
            return None
        content = hashlib.sha256(self.content).hexdigest()
        request = self.file_name, content, self.mode.value, self.board, self.gpus
        return IdempotencyKey(self.key, hashlib.sha256(json.dumps(request).encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class NewSubmission:
    """An accepted submission to be stored, with one job per GPU type."""

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
    """Whether an admin requested it: bans and limits do not apply, and no limit counts it."""
    idempotency_key: IdempotencyKey | None = None
    profile: ProfileOptions | None = None
    warning: str = ""
    """A warning for its submitter; see `Submission`."""
    limit_s: float = 0.0
    """The most seconds that each of its jobs may take."""
    cards: int = 1
    """How many GPUs a job uses; on the CPU always one."""
    consent: SourceVisibility | None = None
    """Who may read its source; None: as its board states now."""


class SubmissionState(StrEnum):
    """The state of a submission, over all its jobs."""

    QUEUED = "queued"
    """No job has started."""
    RUNNING = "running"
    """A job runs, or some have ended and some have not."""
    FINISHED = "finished"
    """Every job ended with an evaluation."""
    FAILED = "failed"
    """A job failed with an internal error; the submission is not at fault."""
    CANCELLED = "cancelled"
    """A person stopped it."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A stored submission; equal sources are stored once, by hash."""

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
    """Why it may be invalid Python, if that was uncertain when it was accepted."""
    consent: SourceVisibility = SourceVisibility.ALWAYS
    """Who might read its source, as its board stated when it was submitted."""
    note: str = ""
    """Its author's note, in Markdown."""

    @property
    def is_ranked(self) -> bool:
        """Whether it is a ranked run."""
        return self.mode is Mode.RANKED


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `most` submissions of one person per window; None covers every board or mode.

    With a `person` it limits only them. They are told the reason, and it ends by itself at `until`.
    """

    most: int
    window: timedelta
    board: BoardId | None = None
    mode: Mode | None = None
    person: PersonId | None = None
    reason: str = ""
    until: datetime | None = None

    def __post_init__(self) -> None:
        if self.most < 1 or self.window <= timedelta(0):
            raise ValueError("a limit needs a number of at least 1 and a window longer than 0")

    def lasts(self, now: datetime) -> bool:
        """Return whether it has not ended."""
        return self.until is None or self.until > now

    @property
    def window_words(self) -> str:
        """Return the window in words, such as `60 min`."""
        return show_span(self.window.total_seconds())

    def refusal(self, oldest: datetime, now: datetime) -> UserError:
        """Return the refusal; `oldest` is when the oldest of the counted submissions was made."""
        plain = "submission" if self.most == 1 else "submissions"
        what = f"{self.mode} {plain}" if self.mode else plain
        verb = "is" if self.most == 1 else "are"
        where = " to this leaderboard" if self.board else ""
        lifts_at = min(filter(None, (oldest + self.window, self.until)))
        when = f"in {show_span(max(1.0, (lifts_at - now).total_seconds()))}"
        why, moments = self._why()
        return UserError(
            "rate-limit",
            f"{why}at most {self.most} {what}{where} {verb} allowed in {self.window_words}; submit "
            f"again {when}",
            {when: lifts_at, **moments},
        )

    def _why(self) -> tuple[str, dict[str, datetime]]:
        """Return why only this person is limited, and the moments that this names."""
        if self.person is None:
            return "", {}
        limited = "an admin limited your submissions"
        if self.until is None:
            return f"{limited}: {self.reason}; ", {}
        end = show_deadline(self.until)
        return f"{limited} until {end}: {self.reason}; ", {end: self.until}


@dataclass(frozen=True, slots=True)
class Ban:
    """Why a person may not submit, and until when; None: until an admin lifts the ban."""

    reason: str
    until: datetime | None = None

    @property
    def words(self) -> str:
        """Return the reason, and when the ban ends if it does."""
        end = "" if self.until is None else f" (until {show_deadline(self.until)})"
        return f"{self.reason}{end}"

    @property
    def refusal(self) -> UserError:
        """Return the refusal for the banned person."""
        words = "you are banned from submitting"
        if self.until is None:
            return UserError("banned", f"{words}: {self.reason}; contact an admin")
        when = show_deadline(self.until)
        message = f"{words} until {when}: {self.reason}; contact an admin"
        return UserError("banned", message, {when: self.until})


class ExclusionKind(StrEnum):
    """Why a submission is no longer ranked."""

    WITHDRAWN = "withdrawn"
    """Its owner took it off the board."""
    DISQUALIFIED = "disqualified"
    """An admin took it off the board, or Podium did because it failed in comparisons."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A submission that keeps its result but is not ranked."""

    submission: SubmissionId
    kind: ExclusionKind
    reason: str
