"""Who asks under `/eval`: the person of a token, or whoever sits at this machine.

The evaluation server's client cannot be told a token, but it can be given one in its address, as in
`http://any:TOKEN@host/eval`: that arrives as a password.

Without a token only programs of this machine are heard, and only where the door listens nowhere
else. A browser's page could ask as well, and a proxy beside the door asks for strangers: both
leave a mark on what they send.
"""

import base64
import binascii

from starlette.requests import Request

from bot.domain.access import Viewer
from bot.domain.errors import UserError
from bot.domain.rights import require_acting, require_person
from bot.frontends.web.access import bearer
from bot.frontends.web.door import door_of, is_loopback
from bot.frontends.web.viewers import caller_by

IDENTITY = "eval:loopback"
_NAME = "Programs of this machine"
_MARKS = (
    "origin", "referer", "sec-fetch-site",
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip",
)  # fmt: skip
"""What a browser or a proxy adds to a request."""


async def reader_of(request: Request) -> Viewer:
    """Who reads; UserError `bad-token` for nobody."""
    return await _caller(request, acts=False)


async def submitter_of(request: Request) -> Viewer:
    """Who submits; UserError for nobody, and for a token that only reads."""
    return await _caller(request, acts=True)


async def _caller(request: Request, *, acts: bool) -> Viewer:
    door = door_of(request)
    if "Authorization" in request.headers:
        caller = await caller_by(request, _secret(request))
        (require_acting if acts else require_person)(caller)
        return caller
    if _is_of_this_machine(request):
        person = await door.store.people.ensure(IDENTITY, _NAME)
        return Viewer(person.id, frozenset({person.identity}))
    raise UserError(
        "bad-token",
        "this needs a token: send Authorization: Bearer TOKEN, or write it into the address, "
        "as in http://any:TOKEN@HOST/eval",
    )


def _secret(request: Request) -> str:
    scheme, _, value = request.headers["Authorization"].partition(" ")
    if scheme.lower() != "basic":
        return bearer(request)
    try:
        _, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise UserError("bad-token", "the token in the address cannot be read") from error
    return password


def _is_of_this_machine(request: Request) -> bool:
    if not getattr(request.app.state, "loopback", False):
        return False
    direct = request.scope.get("http_version") != "1.0"  # what a proxy speaks by default
    unmarked = not any(mark in request.headers for mark in _MARKS)
    return direct and unmarked and is_loopback(request.url.hostname or "")
