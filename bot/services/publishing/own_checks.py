"""What submitters do with the checks of their tasks: begin, follow, repeat and cancel them.

A check is a publication. It is stored before its submitter gets an answer, run by the engine, and
kept for a month.
"""

from dataclasses import dataclass, replace

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, PublicationId
from bot.domain.publication import NewPublication, PublicationSummary, PublishRequest
from bot.ports import Store
from bot.services.publishing.publish import NO_BOARD, REQUEST
from bot.services.publishing.state import (
    PublicationOutcome,
    PublicationState,
    cancel_publication,
    own_publication,
)
from runners.contract.task import Grader

MOST_OPEN = 3
"""The most unfinished checks of one person."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a task or a competition, as its submitter follows it."""

    id: PublicationId
    name: str
    tries: int
    state: PublicationState
    is_competition: bool = False
    has_zip: bool = False
    is_new: bool = True
    """Whether it is of a new board or competition, not of a board's next version."""

    @classmethod
    def of(cls, summary: PublicationSummary) -> "Check":
        """Return the check of a stored publication."""
        state = PublicationState.model_validate_json(summary.state)
        request = REQUEST.validate_json(summary.wish)
        name, has_zip = request.name or "", summary.has_zip
        is_new = request.onto in {None, NO_BOARD}
        return cls(summary.id, name, summary.tries, state, request.competition, has_zip, is_new)

    @property
    def outcome(self) -> PublicationOutcome | None:
        """Return its outcome; None while it runs."""
        return self.state.outcome

    @property
    def can_choose(self) -> bool:
        """Return whether its submitter can choose a grader, and have the zip checked again."""
        return self.has_zip and self.outcome is not None and bool(self.outcome.choose_for)


@dataclass(frozen=True, slots=True)
class OwnChecks:
    """The checks of the people who use one front end."""

    store: Store
    front_end: str

    async def submit(self, request: PublishRequest, data: bytes) -> PublicationId:
        """Store a task to be checked; UserError when the person has too many unfinished checks."""
        await self._require_room(request.person)
        stored = REQUEST.dump_json(request).decode()
        new = NewPublication(self.front_end, request.person, data, stored)
        return await self.store.publications.add(new)

    async def choose_grader(self, caller: Viewer, number: int, grader: Grader) -> PublicationId:
        """Check the zip of the caller's own check again, this grader for the undecided board."""
        summary = await self._own(caller, number)
        check, request = Check.of(summary), REQUEST.validate_json(summary.wish)
        if not check.can_choose or check.outcome is None:
            raise _zip_gone()
        await self._require_room(caller.person)
        request = replace(request, as_admin=request.as_admin and caller.sees_all)
        if request.competition:
            graders = dict(request.graders) | {check.outcome.choose_for: grader}
            request = replace(request, graders=tuple(graders.items()))
        else:
            request = replace(request, grader=grader)
        stored = REQUEST.dump_json(request).decode()
        again = await self.store.publications.repeat(self.front_end, summary.id, stored)
        if again is None:
            raise _zip_gone()
        return again

    async def kept_upload(self, caller: Viewer, number: int) -> tuple[PublishRequest, bytes]:
        """Return the settings and the zip of the caller's own check; UserError if not kept."""
        summary = await self._own(caller, number)
        data = await self.store.publications.kept_zip(self.front_end, summary.id)
        if data is None:
            raise _zip_gone()
        return REQUEST.validate_json(summary.wish), data

    async def get(self, viewer: Viewer, number: int) -> Check:
        """Return the viewer's own check, or any for an admin; UserError if there is none."""
        asked = PublicationId(number)
        return Check.of(await own_publication(self.store, viewer, self.front_end, asked))

    async def of(self, person: PersonId) -> tuple[Check, ...]:
        """Return a person's checks, newest first."""
        found = await self.store.publications.summaries_of(self.front_end, person)
        return tuple(map(Check.of, found))

    async def cancel(self, viewer: Viewer, number: int) -> Check:
        """Cancel the viewer's own check, or any as an admin; UserError if it is too late."""
        await cancel_publication(self.store, viewer, self.front_end, PublicationId(number))
        return await self.get(viewer, number)

    async def _own(self, caller: Viewer, number: int) -> PublicationSummary:
        summary = await self.store.publications.summary(self.front_end, PublicationId(number))
        if summary is None or summary.person != caller.person:
            message = f"you have no check {number}; checks are kept for a month"
            raise UserError("unknown-check", message)
        return summary

    async def _require_room(self, person: PersonId) -> None:
        checks = await self.store.publications.summaries_of(self.front_end, person)
        if sum(each.ended_at is None for each in checks) >= MOST_OPEN:
            words = "of your tasks are being checked already; wait until one check ends"
            raise UserError("too-many-checks", f"{MOST_OPEN} {words}")


def _zip_gone() -> UserError:
    words = "the zip of this check is no longer kept; choose the grader, and upload the zip again"
    return UserError("zip-gone", words)
