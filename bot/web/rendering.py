"""Draws pages: the templates, what each page may load, and errors as people read them."""

import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any, Self

from fastapi import Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bot.domain.access import NOBODY, Viewer
from bot.domain.person import Person
from bot.reports.escaping import clean
from bot.web.assets import asset_url
from bot.web.context import door_of
from bot.web.words import FILTERS

PLACES = (("/", "Leaderboards"), ("/submit", "Submit"), ("/queue", "Queue"), ("/docs", "Docs"))
"""Where the header leads: address and name."""
SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Of every page: nothing is loaded from elsewhere, nothing inline is run or styled."""
_FOR_PROGRAMS = {"api", "popcorn", "eval", "static", "healthz", "readyz", "metrics"}
"""Beneath these nobody gets pages, whatever a browser says that it takes."""
_LEVEL = 5
_NOT_WANTED = re.compile(r"0(\.0*)?")


@cache
def environment() -> Environment:
    """The templates; every value is escaped, and no control or direction mark is let through."""
    made = Environment(
        loader=PackageLoader("bot.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )
    made.filters |= FILTERS
    made.globals |= {"asset": asset_url, "doors": PLACES, "me": None, "here": "", "title": ""}
    return made


def _shown(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@dataclass(frozen=True, slots=True)
class Sheet:
    """A drawn page, ready to be sent any number of times."""

    body: bytes
    zipped: bytes
    tag: str

    @classmethod
    def of(cls, text: str) -> Self:
        """The sheet of a drawn text."""
        body = text.encode()
        zipped = gzip.compress(body, _LEVEL, mtime=0)
        return cls(body, zipped, f'W/"{hashlib.sha256(body).hexdigest()[:32]}"')


async def page(
    request: Request, viewer: Viewer, template: str, values: Mapping[str, Any]
) -> Response:
    """The page that a template makes of these values; its header names who looks."""
    return sent(request, await sheet(request, viewer, template, values))


async def sheet(
    request: Request, viewer: Viewer, template: str, values: Mapping[str, Any]
) -> Sheet:
    """The same, not yet sent; it is for this viewer alone."""
    me = None
    if viewer.person != NOBODY:
        me = await door_of(request).store.people.get(viewer.person)
    # Not in a thread: each time the loop sends or waits, it would have to win the interpreter back.
    return Sheet.of(draw(template, {"me": me, "here": request.url.path, **values}))


def draw(template: str, values: Mapping[str, Any]) -> str:
    """The text that a template makes of these values."""
    return environment().get_template(template).render(values)


def sent(request: Request, drawn: Sheet, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """The answer that carries a page, compressed where the browser takes that.

    Who asks again is told when nothing has changed.
    """
    headers = {
        **SECURITY,
        "Cache-Control": "private, no-cache",
        "ETag": drawn.tag,
        "Vary": "Accept-Encoding, Authorization, Cookie",
    }
    if status is HTTPStatus.OK and request.headers.get("If-None-Match") == drawn.tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    body = drawn.body
    if takes_gzip(request):
        body = drawn.zipped
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers, media_type="text/html; charset=utf-8")


def takes_gzip(request: Request) -> bool:
    """Whether who asks can read gzip, and has not said that it is not wanted (`gzip;q=0`)."""
    for each in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = each.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return not _NOT_WANTED.fullmatch(weight)
    return False


def wants_page(request: Request) -> bool:
    """Whether a browser asked, at an address that is for people."""
    place = request.url.path.removeprefix("/").partition("/")[0]
    return place not in _FOR_PROGRAMS and "text/html" in request.headers.get("Accept", "")


def for_people(request: Request, problem: Response, me: Person | None = None) -> Response:
    """A problem document as a page where a browser asked for one, else as it is.

    `me` is who is signed in, where that is known.
    """
    if not wants_page(request):
        return problem
    told = json.loads(bytes(problem.body))
    values = {"title": told["title"], "status": told["status"], "detail": told["detail"]}
    text = draw("error.html", {"here": request.url.path, "me": me, **values})
    shown = sent(request, Sheet.of(text), HTTPStatus(problem.status_code))
    kept = ("Retry-After", "WWW-Authenticate", "Allow", "Location", "Cache-Control")
    for name in kept:
        if name in problem.headers:
            shown.headers[name] = problem.headers[name]
    return shown
