"""The buttons on a submission's page: what the signed-in person may do (`acting/deeds.html`)."""

from dataclasses import dataclass

from bot.domain.status import SubmissionStatus
from bot.web.sessions import Browser
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class SubmissionButtons:
    """The buttons for a submission in its state, for the signed-in person."""

    number: int
    stamp: str
    """The stamp of the session in which they are pressed."""
    cancel: bool = False
    again: bool = False
    ranked: bool = False
    withdraw: bool = False


def deeds_of(browser: Browser | None, status: SubmissionStatus) -> SubmissionButtons | None:
    """Return the buttons for one's own submission; None for another person's."""
    submission = status.submission
    if browser is None or submission.person != browser.session.person.id:
        return None
    final = status.is_final
    ranked = submission.mode is Mode.RANKED
    if status.board.is_hidden:  # a request to the evaluation server, which its caller repeats there
        return SubmissionButtons(number=submission.id, stamp=browser.stamp, cancel=not final)
    return SubmissionButtons(
        number=submission.id,
        stamp=browser.stamp,
        cancel=not final,
        again=final,
        ranked=status.may_be_ranked,
        withdraw=final and ranked and status.exclusion is None,
    )
