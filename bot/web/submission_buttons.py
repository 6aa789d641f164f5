"""What a person may do with a submission from a page: the buttons of `acting/deeds.html`."""

from dataclasses import dataclass

from bot.domain.status import SubmissionStatus
from bot.web.sessions import Browser
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class SubmissionButtons:
    """The buttons that make sense for a submission as it stands, for who is signed in."""

    number: int
    stamp: str
    """Of the session in which they are pressed."""
    cancel: bool = False
    again: bool = False
    ranked: bool = False
    withdraw: bool = False


def deeds_of(browser: Browser | None, status: SubmissionStatus) -> SubmissionButtons | None:
    """For one's own submission; None for anybody else's."""
    submission = status.submission
    if browser is None or submission.person != browser.session.person.id:
        return None
    final = status.is_final
    ranked = submission.mode is Mode.RANKED
    if status.board.is_hidden:  # a request of the evaluation server: its caller repeats it there
        return SubmissionButtons(number=submission.id, stamp=browser.stamp, cancel=not final)
    return SubmissionButtons(
        number=submission.id,
        stamp=browser.stamp,
        cancel=not final,
        again=final,
        ranked=status.may_be_ranked,
        withdraw=final and ranked and status.exclusion is None,
    )
