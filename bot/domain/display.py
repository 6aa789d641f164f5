"""Where a door shows a submission: kept with it, so that a restart shows it on."""

from dataclasses import dataclass

from bot.domain.ids import PersonId, SubmissionId


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
