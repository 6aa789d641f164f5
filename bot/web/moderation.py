"""The forms with which admins moderate on the page of a person or a submission."""

from dataclasses import dataclass, replace

from fastapi import Request

from bot.domain.accounts import DELETED, SYSTEM_IDENTITY, Person
from bot.domain.ids import is_system_submission
from bot.domain.status import SubmissionStatus
from bot.web.context import context_of
from bot.web.sessions import Browser, browser_of

DONE_MESSAGES = {
    "banned": "The person may no longer submit; their unfinished submissions are stopped.",
    "unbanned": "The person may submit again.",
    "name-reset": "The person is shown by their user name until they choose another name.",
    "disqualified": "The submission is no longer ranked.",
    "requalified": (
        "The submission is ranked again; if it takes one of the first places from another person, "
        "only after both are compared."
    ),
    "rejudging": "The submissions are being judged again; the standings fill as results come in.",
    "cancelled": "The submission is being cancelled.",
    "time-limited": "The person's GPU time of a day is limited.",
    "time-unlimited": "The limit of the person's GPU time is removed.",
}
"""Messages after a decision, by `done` in the address, so that an address cannot inject text."""


@dataclass(frozen=True, slots=True)
class ModerationForms:
    """The forms of an admin for a person, and for one submission of theirs if there is one."""

    stamp: str
    back: str
    """The path of the page, which is shown again after a decision."""
    done: str
    """A message about the last decision; empty without one."""
    identity: str
    name: str
    may_ban: bool
    ban: str
    """Why the person is banned and until when; empty if they are not."""
    limits: tuple[str, ...] = ()
    """The limits of the person's own GPU time, in words."""
    may_reset: bool = False
    """Whether the person's name differs from their user name."""
    submission: int | None = None
    cancel: bool = False
    excluded: bool = False
    looks: bool = False
    """Whether to offer a look at its source, which is recorded; only for another person's."""


async def moderation_of(
    request: Request, person: Person | None, reading: SubmissionStatus | None = None
) -> ModerationForms | None:
    """Return the forms for a page about this person; None if its viewer is not an admin."""
    browser = await browser_of(request)
    if person is None or browser is None or not browser.session.caller.sees_all:
        return None
    store = context_of(request).store
    ban, quotas = await store.moderation.ban_of(person.id), await store.costs.quotas()
    forms = ModerationForms(
        stamp=browser.stamp,
        back=request.url.path,
        done=DONE_MESSAGES.get(request.query_params.get("done", ""), ""),
        identity=person.identity,
        name=person.name,
        may_ban=_may_ban(browser, person),
        ban="" if ban is None else ban.words,
        limits=tuple(each.words for each in quotas if each.key.person == person.id),
        may_reset=person.name_can_be_reset,
    )
    if reading is None or is_system_submission(reading.submission.id):
        return forms
    return replace(
        forms,
        submission=reading.submission.id,
        cancel=not reading.is_final,
        excluded=reading.exclusion is not None,
        looks=person.id != browser.session.person.id,
    )


def _may_ban(browser: Browser, person: Person) -> bool:
    """Return whether it is a person's account, not deleted, and not the admin's own."""
    is_used = person.identity.partition(":")[0] not in {DELETED, SYSTEM_IDENTITY.partition(":")[0]}
    return is_used and person.id != browser.session.person.id
