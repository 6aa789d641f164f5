"""Who is signed in at a browser: its cookie, and the stamp in our forms.

Browsers send a cookie with requests from any site, so it permits only reading. To act, a request
must come from our own pages (`Sec-Fetch-Site`, else `Origin`), and its form must contain the stamp,
a CSRF token known only to the session's pages.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import Request, Response

from bot.domain.errors import UserError
from bot.services.tokens import LIFETIME, BrowserSession, NewToken, session_of
from bot.web.context import context_of

STAMP = "stamp"
"""The stamp's field in every acting form."""
COOKIES = ("__Host-podium", "podium")
"""The names of a session's cookie over HTTPS, and over plain HTTP."""
_LONGEST_SECRET = 200
_LONGEST_PATH = 500


@dataclass(frozen=True, slots=True)
class Browser:
    """A signed-in browser, with the stamp of its forms."""

    session: BrowserSession
    stamp: str


def is_https(request: Request) -> bool:
    """Return whether the browser uses HTTPS, to us or to the proxy in front of us."""
    public = context_of(request).public_url
    return request.url.scheme == "https" or (public or "").startswith("https:")


def cookie_name(request: Request) -> str:
    """Return, for HTTPS, a name that no other host and no plain HTTP can set."""
    return COOKIES[0] if is_https(request) else COOKIES[1]


async def browser_of(request: Request) -> Browser | None:
    """Return who is signed in; None without a cookie, or when its session has ended."""
    secret = request.cookies.get(cookie_name(request), "")
    if not 1 <= len(secret) <= _LONGEST_SECRET:
        return None
    door = context_of(request)
    found = await session_of(door.store, door.clock, secret)
    return None if found is None else Browser(found, _stamp(secret))


async def still_signed_in(request: Request, browser: Browser) -> bool:
    """Return whether the session still has the same rights; asked during a long response."""
    return await browser_of(request) == browser


def _stamp(secret: str) -> str:
    """Return the stamp, derived from the session's secret and not reversible."""
    return hashlib.sha256(f"stamp of {secret}".encode()).hexdigest()


def require_same_origin(request: Request) -> None:
    """Raise UserError unless one of our own pages made the request, by the browser's headers."""
    site = request.headers.get("Sec-Fetch-Site")
    if site == "same-origin" or (site is None and _is_ours(request)):
        return
    raise UserError("foreign-request", "this did not come from a page here; open the page again")


def _is_ours(request: Request) -> bool:
    origin = request.headers.get("Origin", "")
    ours = {context_of(request).public_url or "", request.headers.get("Host", "")}
    return bool(origin) and bool({origin, urlsplit(origin).netloc} & (ours - {""}))


def require_stamp(browser: Browser, stamp: str) -> None:
    """Raise UserError unless the form belongs to this session."""
    if not hmac.compare_digest(browser.stamp.encode(), stamp.encode()):
        words = "this form is of an earlier sign-in; open the page again and repeat it"
        raise UserError("old-form", words)


def remember(request: Request, response: Response, made: NewToken) -> None:
    """Set the session's cookie."""
    response.set_cookie(
        cookie_name(request),
        made.secret,
        max_age=int(LIFETIME.total_seconds()),
        path="/",
        secure=is_https(request),
        httponly=True,
        samesite="lax",
    )


def forget(request: Request, response: Response) -> None:
    """Delete the session's cookie."""
    name, secure = cookie_name(request), is_https(request)
    response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")


def own_path(text: str | None) -> str:
    """Return the target after a sign-in: a path of this server, whatever was requested."""
    path = text or ""
    good = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    good = good and path.isascii() and "\\" not in path and len(path) <= _LONGEST_PATH
    return path if good and not path.startswith("/sign-") else "/"


def new_state() -> str:
    """Return the state that an external sign-in must bring back."""
    return secrets.token_urlsafe(32)
