"""What admins are told of, and the sources that are compared for it."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """What one channel is told of an alert, held by the process that tells it."""

    alert: int
    addressee: str
    text: str
    began_at: datetime
    ended_at: datetime | None
    message: str | None
    """The front end's id of the message; None until it was sent."""
    tries: int


@dataclass(frozen=True, slots=True)
class Unprinted:
    """A ranked submission whose source is compared with those of other people."""

    submission: SubmissionId
    person: PersonId
    board: BoardId
    task_version: TaskVersionId
    source: str = ""
