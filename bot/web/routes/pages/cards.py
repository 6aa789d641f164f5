"""`card.png` below the address of a board, a submission or a person: its link card.

A card shows what people without an account may see, even if the caller may see more: everyone may
cache it. A page that they may not see, or that does not exist, has the general card.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response

from bot.domain.accounts import ANYBODY
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.reports.cards import GENERAL, LinkCard, board_card, draw, person_card, submission_card
from bot.reports.submission import outcome
from bot.services.cache import SharedCache, always
from bot.services.history import person_profile
from bot.services.parser_process import ParserProcess
from bot.services.standings import board_standings, placements
from bot.services.status import read_submission
from bot.web.context import context_of

router = APIRouter()
FRESH_S = 15.0
"""How long the contents of a card are reused."""
_HEADERS = {"Cache-Control": "public, max-age=300", "X-Content-Type-Options": "nosniff"}
_DRAWING: Final = ParserProcess(3.0, patience_s=6.0)
_DRAWN: Final = SharedCache[bytes](128)
Number = Annotated[int, Path(ge=1, lt=1 << 62)]


@router.get("/card.png")
async def general(request: Request) -> Response:
    """Return the general card, which pages without their own card have."""
    return await _picture(request, GENERAL)


@router.get("/boards/{name}/card.png")
async def board(
    request: Request, name: str, gpu: Annotated[str | None, Query(max_length=64)] = None
) -> Response:
    """Return the card of a board."""

    async def read() -> LinkCard:
        found = await board_standings(context_of(request).store, ANYBODY, name, gpu)
        return board_card(found[0])

    return await _card(request, (name, gpu), read)


@router.get("/submissions/{number}/card.png")
async def submission(request: Request, number: Number) -> Response:
    """Return the card of a submission."""
    context, own = context_of(request), SubmissionId(number)

    async def read() -> LinkCard:
        status = await read_submission(context.store, context.clock, ANYBODY, own)
        person = await context.store.people.get(status.submission.person)
        places = await placements(context.store, own) if status.is_final else ()
        above = f"Submission #{number}" + ("" if person is None else f" by {person.name}")
        return submission_card(above, status.board.name, outcome(status).text.capitalize(), places)

    return await _card(request, ("submission", number), read)


@router.get("/people/{number}/card.png")
async def person(request: Request, number: Number) -> Response:
    """Return the card of a person."""

    async def read() -> LinkCard:
        profile = await person_profile(context_of(request).store, ANYBODY, PersonId(number))
        places = [(each.board, each.own) for each in profile.best_first]
        return person_card(profile.person.name, places)

    return await _card(request, ("person", number), read)


async def _card(
    request: Request, subject: tuple[object, ...], read: Callable[[], Awaitable[LinkCard]]
) -> Response:
    """Return a card; the general one if people without an account may not see its subject."""

    async def make() -> LinkCard:
        try:
            return await read()
        except UserError:
            return GENERAL

    key = ("card", *subject)
    return await _picture(request, await context_of(request).cache.get(key, FRESH_S, make))


async def drawn(card: LinkCard) -> bytes:
    """Return the card as a PNG file; a card that was drawn lately is not drawn again."""

    async def make() -> bytes:
        return await _DRAWING.call(draw, card)

    return await _DRAWN.get(card, make, current=always, lag_s=0.0)


async def _picture(request: Request, card: LinkCard) -> Response:
    data = await drawn(card)
    headers = {**_HEADERS, "ETag": f'"{hashlib.sha256(data).hexdigest()[:32]}"'}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type="image/png", headers=headers)
