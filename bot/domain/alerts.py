"""Messages about alerts, and the sources that are compared to find near-identical ones."""

from dataclasses import dataclass
from datetime import datetime

from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId


@dataclass(frozen=True, slots=True)
class AlertMessage:
    """An alert's message in one channel, held by the process that sends or edits it."""

    alert: int
    addressee: str
    text: str
    began_at: datetime
    ended_at: datetime | None
    message: str | None
    """The front end's id of the message; None until it was sent."""
    tries: int


@dataclass(frozen=True, slots=True)
class RankedSource:
    """A ranked submission whose source is compared with those of other people.

    `source` is empty if only its fingerprint is needed.
    """

    submission: SubmissionId
    person: PersonId
    board: BoardId
    task_version: TaskVersionId
    source: str = ""
