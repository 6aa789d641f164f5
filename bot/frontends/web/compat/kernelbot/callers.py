"""Who asks: the person whose token popcorn-cli sends as its id."""

from typing import Annotated

from fastapi import Depends, Request

from bot.domain.errors import UserError
from bot.domain.rights import ANYBODY, Caller, require_acting
from bot.frontends.web.limits import POPCORN_TOKEN
from bot.frontends.web.viewers import caller_by

_WRITE = "then write `cli_id: TOKEN` into ~/.popcorn.yaml"
HOW = (
    "make a token with `/profile link` on Discord, or `podium token create --person NAME` at the "
    f"machine that runs Podium; {_WRITE}"
)
_LONGEST_TOKEN = 200


async def reader_of(request: Request) -> Caller:
    """The person of the token, or anybody where none came; UserError when it is nobody's."""
    secret = request.headers.get(POPCORN_TOKEN, "").strip()
    if not secret:
        return ANYBODY
    if len(secret) > _LONGEST_TOKEN:
        raise UserError("bad-token", f"the cli_id is no token of this Podium; {HOW}")
    try:
        return await caller_by(request, secret)
    except UserError as error:
        raise UserError(error.code, f"{error.message}; {_WRITE}") from error


AnyReader = Annotated[Caller, Depends(reader_of)]
"""Whoever asks."""


async def person_of(reader: AnyReader) -> Caller:
    """The person who asks; UserError for anybody without a token."""
    if reader is ANYBODY:
        raise UserError("no-token", f"this needs the header {POPCORN_TOKEN}; {HOW}")
    return reader


FromPerson = Annotated[Caller, Depends(person_of)]
"""Somebody with a token, who reads."""


async def submitter_of(person: FromPerson) -> Caller:
    """Who may submit; UserError with a token that only reads."""
    require_acting(person)
    return person


FromSubmitter = Annotated[Caller, Depends(submitter_of)]
"""Somebody who may act as the person they are."""
