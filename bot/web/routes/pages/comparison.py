"""`/submissions/N/compare?with=M`: two submissions side by side, their times and their sources."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from markupsafe import Markup

from bot.domain.accounts import Person
from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import ComparedSubmission, SubmissionComparison
from bot.domain.submission import Submission, SubmissionState
from bot.reports.comparison import likeness, names, times
from bot.reports.submission import VERDICT_WORDS
from bot.services.comparison import compare
from bot.web.auth import AnyViewer
from bot.web.context import WebContext, context_of
from bot.web.diff_view import Difference, difference
from bot.web.rendering import draw, page
from runners.contract.verdict import Verdict

router = APIRouter(prefix="/submissions")
WAIT_S = 10.0
"""How long a comparison waits for earlier ones."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A compared submission with its submitter and the results by GPU type, in words and a tone."""

    submission: Submission
    person: Person | None
    ended: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A comparison, and its diff if it can be shown."""

    found: SubmissionComparison
    shape: Difference | None = None
    text: Markup | None = None


@router.get("/{number}/compare")
async def comparison(
    request: Request,
    number: Annotated[int, Path(ge=-(1 << 62), lt=1 << 62)],
    viewer: AnyViewer,
    other: Annotated[str, Query(alias="with", max_length=20)],
) -> Response:
    """Show the results of both, and where their sources differ."""
    door = context_of(request)
    drawn = await _alone(door, viewer, SubmissionId(number), _numbered(other))
    found = drawn.found
    board = await door.store.boards.get(found.first.submission.board)
    values: dict[str, Any] = {
        "title": " and ".join(names(found)),
        "board": board,
        "sides": [await _shown(door, each) for each in (found.first, found.second)],
        "times": list(times(found)),
        "words": likeness(found),
        "shape": drawn.shape,
        "drawn": drawn.text,
    }
    return await page(request, viewer, "comparison.html", values)


async def _alone(
    door: WebContext, viewer: Viewer, first: SubmissionId, second: SubmissionId
) -> _Drawn:
    """Run one comparison at a time: each may keep the interpreter busy for much of a second."""
    try:
        async with asyncio.timeout(WAIT_S):
            await door.comparing.acquire()
    except TimeoutError as error:
        soon = "in a few seconds"
        moment = door.clock.now() + timedelta(seconds=WAIT_S)
        words = f"many compare submissions at the moment; try it again {soon}"
        raise UserError("rate-limit", words, {soon: moment}) from error
    try:
        found = await compare(door.store, door.clock, viewer, first=first, second=second)
        if likeness(found) is not None:
            return _Drawn(found)
        return await asyncio.to_thread(_drawn, found)
    finally:
        door.comparing.release()


def _drawn(found: SubmissionComparison) -> _Drawn:
    shape = difference(found.beside)
    text = draw("parts/difference.html", {"it": shape, "names": _titles(found)})
    return _Drawn(found, shape, Markup(text))  # noqa: S704 - the template has escaped it


def _titles(found: SubmissionComparison) -> list[str]:
    sides = (found.first.submission, found.second.submission)
    return [f"#{each.id} {each.file_name}" for each in sides]


async def _shown(door: WebContext, side: ComparedSubmission) -> Shown:
    given = side.submission
    ended = [(gpu, *_words(verdict)) for gpu, verdict in sorted(side.verdicts.items())]
    if given.state is not SubmissionState.FINISHED:
        ended += [(gpu, given.state.value, "") for gpu in given.gpus if gpu not in side.verdicts]
    return Shown(given, await door.store.people.get(given.person), tuple(ended))


def _words(verdict: Verdict) -> tuple[str, str]:
    return VERDICT_WORDS[verdict], "good" if verdict is Verdict.PASSED else "bad"


def _numbered(text: str) -> SubmissionId:
    """Return the number that a person typed, such as `#17`."""
    digits = text.strip().removeprefix("#")
    if not digits.isascii() or not digits.isdigit():
        raise UserError("bad-number", "name the other submission by its number, such as 17")
    return SubmissionId(int(digits))
