"""Bodies: read within a limit and a deadline into strict types, and written from them."""

import asyncio
from typing import TypeVar

from fastapi import Request, Response
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from bot.domain.errors import UserError
from runners.contract.wire import Wire

READ_S = 60.0
"""What a body may take to arrive."""
_MOST_FAULTS = 3

Body = TypeVar("Body", bound=Wire)


async def read(request: Request, kind: type[Body], most: int) -> Body:
    """The body as this type; UserError when it is longer than `most` bytes or does not fit.

    Not FastAPI's own way: that reads bodies of any length, and takes JSON's lists for no tuples.
    """
    try:
        async with asyncio.timeout(READ_S):
            text = await _text(request, most)
    except TimeoutError as error:
        words = f"the body did not arrive within {READ_S:.0f} s; send it again"
        raise UserError("slow-body", words) from error
    except ClientDisconnect as error:
        raise UserError("half-body", "the body broke off; send it again") from error
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise UserError("bad-body", f"the body is no {kind.__name__}: {_faults(error)}") from error


async def _text(request: Request, most: int) -> bytes:
    text = bytearray()
    async for piece in request.stream():
        text += piece
        if len(text) > most:
            raise UserError("large-body", f"the body is too long; at most {most} bytes are taken")
    return bytes(text)


def _faults(error: ValidationError) -> str:
    """Where it does not fit and why; never what was sent."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    words = [
        f"{'.'.join(str(part) for part in fault['loc']) or 'all of it'}: {fault['msg']}"
        for fault in found[:_MOST_FAULTS]
    ]
    more = len(found) - len(words)
    return "; ".join(words) + (f"; and {more} more" if more > 0 else "")


def written(body: Wire) -> Response:
    """The answer that holds this value; nobody on the way may keep it."""
    return Response(
        body.model_dump_json(),
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
