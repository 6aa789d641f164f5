"""Renders pages from templates; static files, errors as pages, and parts that update themselves."""

import asyncio
import gzip
import hashlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Self
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from bot.domain.accounts import Caller
from bot.domain.board import NOBODY
from bot.domain.errors import StoreError, UserError
from bot.domain.names import split_handle
from bot.domain.times import show_score, show_speed_up, show_time
from bot.reports import blocks, escaping
from bot.web.context import STREAM_HEADERS, WebContext, context_of, page_of
from bot.web.markup import with_code, with_line

_DAY_S, _HOUR_S = 86_400, 3_600


def time_left(span: timedelta) -> str:
    """Return a remaining time such as `3 days 4 h`; `static/podium.js` uses the same words."""
    seconds = max(0, int(span.total_seconds()))
    if seconds >= 2 * _DAY_S:
        return f"{seconds // _DAY_S} days {seconds // _HOUR_S % 24} h"
    if seconds >= _HOUR_S:
        return f"{seconds // _HOUR_S} h {seconds // 60 % 60} min"
    return f"{seconds // 60} min {seconds % 60} s"


def moment(at: datetime) -> str:
    """Return an aware time in UTC, to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def day(at: datetime) -> str:
    """Return a date in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def many(count: int, one: str, more: str) -> str:
    """Return a number with its noun, such as `1 person` or `2,000 people`."""
    return f"{count:,} {one if count == 1 else more}"


def upper_first(text: str) -> str:
    """Return the text with a capital first letter, otherwise unchanged."""
    return text[:1].upper() + text[1:]


def kind(block: blocks.Block) -> str:
    """Return the type of a report's block."""
    return type(block).__name__


def query(values: Mapping[str, object]) -> str:
    """Return the query string of an address, without None and empty values."""
    return urlencode({name: value for name, value in values.items() if value not in {None, ""}})


FILTERS = {
    "upper_first": upper_first,
    "kind": kind,
    "with_code": with_code,
    "query": query,
    "score": show_score,
    "speed_up": show_speed_up,
    "time": show_time,
    "time_left": time_left,
    "moment": moment,
    "day": day,
    "many": many,
    "with_line": with_line,
    "split_handle": split_handle,
}
"""The filters of the templates, by name."""

PREFIX = "/static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "ico": "image/x-icon",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """A file whose address changes with its content, so that it may be cached forever."""

    name: str
    media_type: str
    data: bytes
    zipped: bytes
    digest: str

    @property
    def url(self) -> str:
        """Return its address on this server."""
        return f"{PREFIX}/{self.digest}/{self.name}"


@cache
def assets() -> Mapping[str, Asset]:
    """Return every file of `static/`, by name."""
    folder = files("bot.web").joinpath("static")
    loaded = (_asset(each.name, each.read_bytes()) for each in folder.iterdir() if each.is_file())
    return {each.name: each for each in loaded}


def asset_url(name: str) -> str:
    """Return the address of a file of `static/`; KeyError for an unknown name."""
    return assets()[name].url


def _asset(name: str, data: bytes) -> Asset:
    digest = hashlib.sha256(data).hexdigest()[:_DIGITS]
    kind = _TYPES[name.rpartition(".")[2]]
    return Asset(name, kind, data, gzip.compress(data, mtime=0), digest)


NAVIGATION = (("/", "Boards"), ("/submit", "Submit"), ("/queue", "Queue"), ("/docs", "Docs"))
"""The links of the page header: address and name."""
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
"""On every page: nothing is loaded from elsewhere, and nothing inline is run or styled."""
_FOR_PROGRAMS = {"api", "popcorn", "eval", "static", "healthz", "readyz", "metrics"}
"""Below these paths there are no pages, whatever a browser accepts."""
_GZIP_LEVEL = 5
_ZERO_WEIGHT = re.compile(r"0(\.0*)?")


@cache
def environment() -> Environment:
    """Return the templates; every value is escaped, control and direction marks are removed."""
    templates = Environment(
        loader=PackageLoader("bot.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_cleaned,
    )
    templates.filters |= FILTERS
    templates.globals |= dict.fromkeys(("here", "back", "title", "site", "description"), "")
    templates.globals |= {"asset": asset_url, "navigation": NAVIGATION, "me": None}
    templates.globals["card"] = "/card.png"
    return templates


def _cleaned(value: object) -> object:
    return (
        escaping.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
    )


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A rendered page, ready to be sent any number of times."""

    body: bytes
    zipped: bytes
    """Empty for a page with a form's stamp, because the compressed length could reveal it."""
    tag: str
    media_type: str

    @classmethod
    def of(cls, text: str, media_type: str = "text/html; charset=utf-8") -> Self:
        """Return the page with this text."""
        body = text.encode()
        is_secret = b'name="stamp"' in body  # quotes in other people's texts are escaped
        zipped = b"" if is_secret else gzip.compress(body, _GZIP_LEVEL, mtime=0)
        return cls(body, zipped, f'W/"{hashlib.sha256(body).hexdigest()[:32]}"', media_type)


async def page(
    request: Request, viewer: Caller, template: str, values: Mapping[str, Any]
) -> Response:
    """Return the response with a rendered template; its header shows the viewer."""
    return page_response(request, await render_page(request, viewer, template, values))


async def render_page(
    request: Request, viewer: Caller, template: str, values: Mapping[str, Any]
) -> RenderedPage:
    """Return the rendered page, which is only for this viewer."""
    frame = frame_of(request, viewer)
    # Not in a thread: after each write, the event loop would have to wait for the interpreter lock.
    return RenderedPage.of(render(template, {**frame, **values}))


def frame_of(request: Request, viewer: Caller) -> dict[str, Any]:
    """Return the values of a page's header; a page for several requests has its own `back`."""
    me = None if viewer.person == NOBODY else viewer
    site, back = context_of(request).public_url or "", page_of(request)
    return {"me": me, "viewer": viewer, "here": request.url.path, "back": back, "site": site}


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return the text of a rendered template."""
    return environment().get_template(template).render(values)


def page_response(
    request: Request, rendered: RenderedPage, status: HTTPStatus = HTTPStatus.OK
) -> Response:
    """Return the response with a page, compressed if the browser accepts it.

    An unchanged page is answered with 304.
    """
    headers = {
        **SECURITY,
        "Cache-Control": "private, no-cache",
        "ETag": rendered.tag,
        "Vary": "Accept-Encoding, Authorization, Cookie",
    }
    if status is HTTPStatus.OK and request.headers.get("If-None-Match") == rendered.tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    body = rendered.body
    if rendered.zipped and takes_gzip(request):
        body = rendered.zipped
        headers["Content-Encoding"] = "gzip"
    return Response(body, status, headers, media_type=rendered.media_type)


def takes_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip and has not excluded it (`gzip;q=0`)."""
    for accepted in request.headers.get("Accept-Encoding", "").lower().split(","):
        coding, _, weight = accepted.replace(" ", "").partition(";q=")
        if coding == "gzip":
            return not _ZERO_WEIGHT.fullmatch(weight)
    return False


def wants_page(request: Request) -> bool:
    """Return whether a browser asked for a page at an address for people."""
    section = request.url.path.removeprefix("/").partition("/")[0]
    return section not in _FOR_PROGRAMS and "text/html" in request.headers.get("Accept", "")


def as_page(request: Request, problem: Response, frame: Mapping[str, Any]) -> Response:
    """Return a problem document as a page if a browser asked for one, else unchanged."""
    if not wants_page(request):
        return problem
    document = json.loads(bytes(problem.body))
    text = render("error.html", {"here": request.url.path, **frame, **document})
    shown = page_response(request, RenderedPage.of(text), HTTPStatus(problem.status_code))
    for name in ("Retry-After", "WWW-Authenticate", "Allow", "Location", "Cache-Control"):
        if name in problem.headers:
            shown.headers[name] = problem.headers[name]
    return shown


TICK_S = 1.0
_QUIET_S = 20.0
"""After this silence a comment is sent, to detect disconnected clients."""
LONGEST_S = 3_600.0
"""How long one response lasts; then the browser reconnects."""

Part = tuple[str, bool]
"""The text, and whether it is the last."""
PartSource = Callable[[], Awaitable[Part]]
Still = Callable[[], Awaitable[bool]]
"""Returns whether the client may still see the part, such as `auth.has_same_viewer`."""


async def always() -> bool:
    """Return True: everyone may see the part."""
    return True


def live(context: WebContext, part: PartSource, still: Still = always) -> StreamingResponse:
    """Send the part now and after each change, until the last one or until the server closes.

    `still` is called before each event, so that a client who may no longer see it gets nothing.
    """
    events = _part_events(context, part, still)
    return StreamingResponse(events, media_type="text/event-stream", headers=STREAM_HEADERS)


async def _part_events(context: WebContext, part: PartSource, still: Still) -> AsyncIterator[str]:
    loop = asyncio.get_running_loop()
    ends = loop.time() + LONGEST_S
    sent, sent_at = "", loop.time()
    yield "retry: 3000\n\n"
    while not context.closing.begun and loop.time() < ends:
        text, last = await _read_part(part, sent)
        due = text != sent or last or loop.time() - sent_at > _QUIET_S
        if due and not await _is_allowed(still):
            return
        if text != sent:
            yield event("part", text)
        elif due and not last:
            yield ": still here\n\n"
        sent, sent_at = text, loop.time() if due else sent_at
        if last:
            yield event("done", "")
            return
        await asyncio.sleep(TICK_S)


async def _read_part(part: PartSource, previous: str) -> Part:
    """Return the part, or the previous one if the database is unavailable or the part is gone."""
    try:
        return await part()
    except StoreError:
        return previous, False
    except UserError:
        return previous, True


async def _is_allowed(still: Still) -> bool:
    """Return whether the client may still see it; if that is unknown, it must reconnect."""
    try:
        return await still()
    except StoreError:
        return False


def event(name: str, text: str) -> str:
    """Return one event in wire format; each line break in the text starts a new data line."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines() or [""])
    return f"event: {name}\n{lines}\n"
