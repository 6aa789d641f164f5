"""The state of a publication as every front end stores, shows and cancels it."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog
from pydantic import BaseModel, ConfigDict

from bot.domain import publication as domain
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import BoardId, PublicationId
from bot.domain.tasks.lint import CheckStep, TaskReport
from bot.ports import Store
from runners.contract.runner import RunnerError
from runners.contract.task import Grader

RUNNER = "runner"
"""The code of an outcome when a runner failed, not the task."""
_MOST_IGNORED = 50
"""The most remarks about ignored keys that are stored."""
_log = structlog.get_logger(__name__)


class PublicationOutcome(BaseModel):
    """How a publication ended; `board` is set when it was published, over version `before`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    title: str
    message: str = ""
    """What was published, or why nothing was published; empty when `report` says it."""
    report: TaskReport | None = None
    """The check that found errors."""
    board: BoardId | None = None
    before: int = 0
    """The number of the task version that was replaced, 0 for a new board."""
    change: domain.PublishChange = domain.PublishChange.UNCHANGED
    code: str = ""
    """Why nothing was published, as an error code."""
    reason: str = ""
    """Why nothing was published, in the words of the command line."""
    version: int = 0
    note: str = ""
    checked: tuple[tuple[str, str], ...] = ()
    """GPU types on which the task was not run, each with the reason."""
    grading: str = ""
    """Which grader grades the task and why; empty if nothing was checked."""
    choose_for: str = ""
    """The board whose grader the creator has to choose before the check can pass."""
    boards: "tuple[PublicationOutcome, ...]" = ()
    """The boards of a competition, which is published when there are any; `board` is None then."""
    ignored: tuple[str, ...] = ()
    """What was ignored in the files of a competition."""

    @property
    def published(self) -> bool:
        """Return whether anything was published."""
        return self.board is not None or bool(self.boards)


class PublicationState(BaseModel):
    """The state of a publication: the steps of its check, then its outcome."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    begun: tuple[str, ...] = ()
    """What was started, in the words of the command line."""
    steps: tuple[CheckStep, ...] = ()
    publishing: bool = False
    """Whether the check has passed; the board may already be stored."""
    grader: Grader | None = None
    """The grader of what is published, once the check has passed."""
    grading: str = ""
    """Why this one grades."""
    outcome: PublicationOutcome | None = None


class TakenOverError(Exception):
    """Another process has taken over this publication."""


@dataclass(frozen=True, slots=True)
class HeldPublication:
    """A publication that `owner`, an engine of this process, holds under a lease."""

    store: Store
    owner: str
    publication: domain.Publication
    request: domain.PublishRequest

    async def save_place(self, place: str) -> None:
        """Store the front end's own JSON; TakenOverError when another process has taken over."""
        if not await self.store.publications.save_state(
            self.publication.id, self.owner, place=place
        ):
            raise TakenOverError


class PublicationObserver(Protocol):
    """Shows one publication where it came from. Its errors never stop the publication."""

    async def changed(self, state: PublicationState) -> None:
        """Show progress of the check. Calls never overlap; the outcome cancels a running one."""

    async def finished(self, state: PublicationState) -> None:
        """Show the stored outcome. May be called again after the process was killed."""


async def own_publication(
    store: Store, viewer: Viewer, front_end: str | None, number: PublicationId
) -> domain.PublicationSummary:
    """Return the viewer's own publication, or any for an admin; UserError when there is none.

    If `front_end` is None, it may be of any front end.
    """
    summary = await store.publications.summary(front_end, number)
    if summary is None or not (viewer.sees_all or summary.person == viewer.person):
        raise UserError("unknown-check", f"check {number} does not exist, or was deleted")
    return summary


async def cancel_publication(
    store: Store, viewer: Viewer, front_end: str | None, number: PublicationId
) -> None:
    """Cancel the viewer's own publication, or any for an admin, before its board is stored.

    Its runs stop, and the process that holds it ends it. UserError when it is too late.
    """
    found = await own_publication(store, viewer, front_end, number)
    why = "by its submitter" if found.person == viewer.person else "by an admin"
    async with store.transaction() as tx:
        if not await tx.publications.cancel(found.person, why, number):
            raise UserError("finished", f"check {number} has ended or is cancelled already")
        await tx.audit.record(viewer.person, "cancel", f"check {number}", "")


def outcome_of(draft: domain.PublishedDraft, before: int) -> PublicationOutcome:
    """Return the outcome of a publication that was stored over task version `before`."""
    published = draft.published
    board = published.board
    return PublicationOutcome(
        title=f"Leaderboard {board.name}",
        message=published.summary,
        board=board.id,
        before=before,
        change=published.change,
        version=published.version,
        note=published.note,
        checked=tuple((report.gpu, report.obstacle) for report in draft.reports),
        grading=draft.grading,
    )


def outcome_of_competition(
    name: str, drafts: Sequence[domain.PublishedDraft], ignored: Sequence[str]
) -> PublicationOutcome:
    """Return the outcome of a competition whose boards were stored."""
    count = f"{len(drafts)} board{'' if len(drafts) == 1 else 's'}"
    return PublicationOutcome(
        title=f"Competition {name}",
        message=f"Competition {name} with {count} is published.",
        boards=tuple(outcome_of(each, 0) for each in drafts),
        ignored=tuple(ignored[:_MOST_IGNORED]),
    )


def outcome_of_error(title: str, error: Exception) -> PublicationOutcome:
    """Return the outcome of a publication with this title that failed with an error."""
    match error:
        case domain.UnsoundTaskError(report=report, board=board):
            words = "choose the grader" if report.undecided else "errors to fix"
            return PublicationOutcome(
                title=f"{report.task} on {report.gpu}: {words}",
                report=report,
                code=error.code,
                reason=error.message,
                grading=report.grading,
                choose_for=board if report.undecided else "",
            )
        case UserError():
            message, code, reason = error.message, error.code, error.message
        case RunnerError():
            message = (
                f"Internal error: {error}. Your task is not at fault. Nothing was published; try "
                "again."
            )
            code, reason = RUNNER, str(error)
        case _:
            message = reason = _bug(error)
            code = "incident"
    return PublicationOutcome(title=title, message=message, code=code, reason=reason)


def _bug(error: Exception) -> str:
    incident = secrets.token_hex(4)
    _log.error("a check failed", action="incident", incident=incident, exc_info=error)
    return f"This is a bug in Podium; please report incident {incident}. Nothing was published."
