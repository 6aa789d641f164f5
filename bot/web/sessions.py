"""Signed-in browsers, and the forms by which people act.

Browsers send a cookie with requests from any site, so a cookie only permits reading. To act, a
request must come from a page of this server (`Sec-Fetch-Site`, else `Origin`), and its form must
contain the session's CSRF token, called the stamp. Forms have limits on size and time.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from fastapi.datastructures import UploadFile as FastUploadFile
from starlette.datastructures import FormData, UploadFile

from bot.domain.accounts import Caller
from bot.domain.errors import UserError
from bot.domain.noise import passed_too_noisy
from bot.domain.status import SubmissionStatus
from bot.domain.tasks.bundle import MAX_PACKED
from bot.services.tokens import LIFETIME, BrowserSession, NewToken, session_of
from bot.web.bodies import form_of
from bot.web.context import context_of

STAMP = "stamp"
"""The stamp's field in every acting form."""
COOKIES = ("__Host-podium", "podium")
"""The names of a session's cookie over HTTPS, and over plain HTTP."""
_LONGEST_SECRET = 200
_LONGEST_PATH = 1_400
"""Enough for every form, and short enough for the cookie of a sign-in by Discord."""


@dataclass(frozen=True, slots=True)
class Browser:
    """A signed-in browser, with the stamp of its forms."""

    session: BrowserSession
    stamp: str


def is_https(request: Request) -> bool:
    """Return whether the browser uses HTTPS, to this server or to the proxy before it."""
    public = context_of(request).public_url
    return request.url.scheme == "https" or (public or "").startswith("https:")


def cookie_name(request: Request) -> str:
    """Return the cookie's name; the one for HTTPS cannot be set by other hosts or over HTTP."""
    return COOKIES[0] if is_https(request) else COOKIES[1]


async def browser_of(request: Request) -> Browser | None:
    """Return the signed-in browser; None without a cookie, or when its session has ended."""
    secret = request.cookies.get(cookie_name(request), "")
    if not 1 <= len(secret) <= _LONGEST_SECRET:
        return None
    context = context_of(request)
    session = await session_of(context.store, context.clock, secret)
    return None if session is None else Browser(session, _stamp(secret))


async def still_signed_in(request: Request, browser: Browser) -> bool:
    """Return whether the session still has the same rights; checked during a long response."""
    return await browser_of(request) == browser


def _stamp(secret: str) -> str:
    """Return the stamp, derived from the session's secret and not reversible."""
    return hashlib.sha256(f"stamp of {secret}".encode()).hexdigest()


def require_same_origin(request: Request) -> None:
    """Raise UserError unless the request's headers say that it comes from a page of this server."""
    site = request.headers.get("Sec-Fetch-Site")
    if site == "same-origin" or (site is None and _is_own_origin(request)):
        return
    raise UserError("foreign-request", "this is not from a page of Podium; open the page again")


def _is_own_origin(request: Request) -> bool:
    origin = request.headers.get("Origin", "")
    own = {context_of(request).public_url or "", request.headers.get("Host", "")}
    return bool(origin) and bool({origin, _host_of(origin)} & (own - {""}))


def _host_of(origin: str) -> str:
    """Return an origin's host with its port; empty when it is malformed, such as `http://[`."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def require_stamp(browser: Browser, stamp: str) -> None:
    """Raise UserError unless the form belongs to this session."""
    if not hmac.compare_digest(browser.stamp.encode(), stamp.encode()):
        message = "this form is from an earlier sign-in; open its page and send it again"
        raise UserError("old-form", message)


def set_cookie(request: Request, response: Response, token: NewToken) -> None:
    """Set the session's cookie."""
    response.set_cookie(
        cookie_name(request),
        token.secret,
        max_age=int(LIFETIME.total_seconds()),
        path="/",
        secure=is_https(request),
        httponly=True,
        samesite="lax",
    )


def delete_cookie(request: Request, response: Response) -> None:
    """Delete the session's cookie."""
    name, secure = cookie_name(request), is_https(request)
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def local_path(text: str | None) -> str:
    """Return the target after a sign-in: a path of this server, whatever was requested."""
    path = text if text and len(text) <= _LONGEST_PATH else ""
    is_safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    is_safe = is_safe and path.isascii() and "\\" not in path
    return path if is_safe and not path.startswith("/sign-") else "/"


def new_state() -> str:
    """Return a new state, which Discord must return at the end of a sign-in."""
    return secrets.token_urlsafe(32)


MOST = 64 << 10
"""The most bytes of a form, not counting its file."""
MOST_WITH_ZIP = MAX_PACKED + MOST
"""The most bytes of a form with a task zip."""
MOST_WITH_KEPT_ZIP = MAX_PACKED * 4 // 3 + 4 + MOST
"""The same for a form that is shown again with the zip in base64."""
_MOST_FIELDS = 500
_LONGEST_REASON = 300


def parse_number(text: str, most: int) -> int | None:
    """Return the number from 1 to `most` that a person typed, such as `#17`; else None.

    Its length is checked first: Python does not parse numbers of thousands of digits.
    """
    digits = text.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
        return None
    return int(digits) if 1 <= int(digits) <= most else None


_AMOUNT = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,6})?", re.ASCII)


def parse_amount(text: str, most: float) -> float | None:
    """Return an amount that a person typed, such as `2.50`; None unless above 0 and up to `most`.

    A dollar sign may come first.
    """
    digits = text.strip().removeprefix("$")
    if not _AMOUNT.fullmatch(digits):
        return None
    return float(digits) if 0 < float(digits) <= most else None


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded file; both fields are untrusted."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a form."""

    data: FormData

    def text(self, name: str) -> str:
        """Return a field without surrounding white space; empty when there is none."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """Return a field unchanged."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    @property
    def reason(self) -> str:
        """Return the reason that was typed, cut to the longest that is stored."""
        return self.text("reason")[:_LONGEST_REASON]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return every value of a field."""
        return tuple(each for each in self.data.getlist(name) if isinstance(each, str))

    async def file(self, name: str) -> File | None:
        """Return an uploaded file, or else the one that the form kept; None without either."""
        value = self.data.get(name)
        if not isinstance(value, (UploadFile, FastUploadFile)) or not value.filename:
            return self._kept()
        await value.seek(0)  # a form that is shown again keeps what was read already
        return File(value.filename, await value.read())

    def _kept(self) -> File | None:
        data, name = self.raw("kept_data"), self.raw("kept_name")
        try:
            return File(name, base64.b64decode(data, validate=True)) if data and name else None
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """A form that a page of this server sent."""

    browser: Browser
    fields: Fields

    @property
    def caller(self) -> Caller:
        """Return the person who acts, with their current rights."""
        return self.browser.session.caller


@asynccontextmanager
async def read_form(request: Request, most: int = MOST) -> AsyncIterator[Fields]:
    """Yield a request's form; UserError when it is longer than `most` bytes or incomplete."""
    async with form_of(request, most, files=1, fields=_MOST_FIELDS) as form:
        yield Fields(form)


def submitted_form(
    most: int = MOST, require: Callable[[Caller], None] | None = None
) -> Callable[[Request], AsyncGenerator[SubmittedForm, None]]:
    """Return a dependency that reads a route's form; UserError unless a page here sent it.

    `require` raises UserError for people without the right; their forms are not read.
    """

    async def read_submitted_form(request: Request) -> AsyncGenerator[SubmittedForm, None]:
        require_same_origin(request)
        browser = await browser_of(request)
        if browser is None:
            raise UserError("signed-out", "you are not signed in; sign in and try again")
        if require is not None:
            require(browser.session.caller)
        async with read_form(request, most) as fields:
            require_stamp(browser, fields.raw(STAMP))
            yield SubmittedForm(browser, fields)

    return read_submitted_form


SmallForm = Annotated[SubmittedForm, Depends(submitted_form())]
"""A form without a file."""


@dataclass(frozen=True, slots=True)
class SubmissionButtons:
    """The buttons that the signed-in person gets for a submission."""

    number: int
    stamp: str
    """The stamp of the session in which they are pressed."""
    cancel: bool = False
    again: bool = False
    edit: bool = False
    passed: bool = False
    noisy: bool = False
    ranked: bool = False
    withdraw: bool = False


def submission_buttons(
    browser: Browser | None, status: SubmissionStatus
) -> SubmissionButtons | None:
    """Return the buttons for the person's own submission; None for another person's."""
    submission = status.submission
    if browser is None or submission.person != browser.session.person.id:
        return None
    final = status.is_final
    ranked = submission.is_ranked
    found = [each.evaluation for each in status.jobs if each.evaluation is not None]
    if status.board.is_hidden:  # a request to the evaluation server can only be repeated there
        return SubmissionButtons(number=submission.id, stamp=browser.stamp, cancel=not final)
    return SubmissionButtons(
        number=submission.id,
        stamp=browser.stamp,
        cancel=not final,
        again=final,
        edit=final,
        passed=status.passed,
        noisy=status.passed and any(map(passed_too_noisy, found)),
        ranked=status.may_be_ranked,
        withdraw=final and ranked and status.exclusion is None,
    )
