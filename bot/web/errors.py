"""The server's error handler: returns each family of errors as a problem document (RFC 9457)."""

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from bot.domain.accounts import Person
from bot.domain.errors import StoreError, UserError, fault_words
from bot.web.context import context_of
from bot.web.rendering import for_people, wants_page
from bot.web.sessions import browser_of
from runners.contract.runner import RunnerError

_log = structlog.get_logger(__name__)

RETRY_S = 2
"""Seconds after which to retry while the database is unavailable."""
_STATUSES = {
    "bad-address": HTTPStatus.UNPROCESSABLE_ENTITY,
    "bad-token": HTTPStatus.UNAUTHORIZED,
    "banned": HTTPStatus.FORBIDDEN,
    "board-exists": HTTPStatus.CONFLICT,
    "board-moved": HTTPStatus.CONFLICT,
    "closed": HTTPStatus.CONFLICT,
    "finished": HTTPStatus.CONFLICT,
    "foreign-request": HTTPStatus.FORBIDDEN,
    "harness-version": HTTPStatus.CONFLICT,
    "hidden-source": HTTPStatus.FORBIDDEN,
    "key-reused": HTTPStatus.UNPROCESSABLE_ENTITY,
    "large-body": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "lease-lost": HTTPStatus.CONFLICT,
    "moved": HTTPStatus.CONFLICT,
    "narrow-token": HTTPStatus.FORBIDDEN,
    "no-gpu-left": HTTPStatus.CONFLICT,
    "no-limit": HTTPStatus.CONFLICT,
    "no-match": HTTPStatus.PRECONDITION_REQUIRED,
    "no-version": HTTPStatus.CONFLICT,
    "no-answer": HTTPStatus.UNPROCESSABLE_ENTITY,
    "not-allowed": HTTPStatus.FORBIDDEN,
    "not-banned": HTTPStatus.CONFLICT,
    "not-invited": HTTPStatus.CONFLICT,
    "not-paused": HTTPStatus.CONFLICT,
    "not-yours": HTTPStatus.FORBIDDEN,
    "off-board": HTTPStatus.CONFLICT,
    "old-form": HTTPStatus.FORBIDDEN,
    "on-board": HTTPStatus.CONFLICT,
    "paused": HTTPStatus.CONFLICT,
    "rate-limit": HTTPStatus.TOO_MANY_REQUESTS,
    "signed-out": HTTPStatus.UNAUTHORIZED,
    "slow-body": HTTPStatus.REQUEST_TIMEOUT,
    "stale-match": HTTPStatus.PRECONDITION_FAILED,
    "too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too-many-checks": HTTPStatus.CONFLICT,
    "too-many-exports": HTTPStatus.CONFLICT,
    "too-many-tokens": HTTPStatus.CONFLICT,
}
"""HTTP statuses of UserErrors by code; unknown names are 404, all else 400."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_UNKNOWN = "unknown-"
_OURS = (StoreError, RunnerError)


def handle_failures(app: FastAPI) -> None:
    """Return every error of the application as a problem document, or a page for a browser."""
    for family in (UserError, *_OURS, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(family, _answer)


class MethodError(HTTPException):
    """Another method is required; the error lists all methods of the path."""

    def __init__(self, allowed: Iterable[str]) -> None:
        headers = {"Allow": ", ".join(sorted(allowed))}
        super().__init__(HTTPStatus.METHOD_NOT_ALLOWED, headers=headers)


async def _answer(request: Request, error: Exception) -> Response:
    if not wants_page(request):
        return await answer_to(request, error)
    if isinstance(error, RequestValidationError):
        error = _for_reader(error)
    me = None if isinstance(error, _OURS) else await _signed_in(request)
    return for_people(request, await answer_to(request, error), me)


def _for_reader(error: RequestValidationError) -> Exception:
    """Return the error in words for people who followed a link or edited an address."""
    places = {str(part) for each in error.errors() for part in each["loc"][:1]}
    if places == {"path"}:
        return HTTPException(HTTPStatus.NOT_FOUND)
    names = ", ".join(sorted({f"“{each['loc'][-1]}”" for each in error.errors()}))
    return UserError("bad-address", f"{names} cannot have this value; change it and try again")


async def _signed_in(request: Request) -> Person | None:
    """Return who is signed in; None also when the database does not answer."""
    try:
        browser = await browser_of(request)
        if browser is None:
            return None
        return await context_of(request).store.people.get(browser.session.caller.person)
    except StoreError:
        return None


async def answer_to(request: Request, error: Exception) -> Response:
    """Return the response to a failed request."""
    match error:
        case UserError():
            headers = _when(error, context_of(request).clock.now()) if error.moments else {}
            return problem(status_of(error.code), error.code, error.message, headers)
        case StoreError() | RunnerError():
            return _away(error)
        case HTTPException():
            status = HTTPStatus(error.status_code)
            headers = dict(error.headers or {})
            known = isinstance(error, MethodError) or "app" not in request.scope
            if status is HTTPStatus.METHOD_NOT_ALLOWED and not known:
                headers["Allow"] = ", ".join(_allowed(request))
            return problem(status, _slug(status), _words(status), headers)
        case RequestValidationError():
            faults = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {fault_words(each)}" for each in error.errors()
            )
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", faults)
        case _:
            return _incident(error)


def _allowed(request: Request) -> Iterator[str]:
    """Yield all methods of the path; one route knows only its own."""
    for method in _METHODS:
        asked = {**request.scope, "method": "GET" if method == "HEAD" else method}
        if any(route.matches(asked)[0] is Match.FULL for route in request.app.routes):
            yield method


def _when(error: UserError, now: datetime) -> dict[str, str]:
    """Return a Retry-After header, if the error knows the time."""
    if status_of(error.code) is not HTTPStatus.TOO_MANY_REQUESTS:
        return {}
    wait = max(error.moments.values()) - now
    return {"Retry-After": str(max(1, math.ceil(wait.total_seconds())))}


def status_of(code: str) -> HTTPStatus:
    """Return the status for a UserError's code."""
    missing = code.startswith(_UNKNOWN)
    return _STATUSES.get(code, HTTPStatus.NOT_FOUND if missing else HTTPStatus.BAD_REQUEST)


def problem(
    status: HTTPStatus, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem document; `code` is for programs, `detail` says what to do."""
    more = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    body = {"title": status.phrase, "status": int(status), "code": code, "detail": detail}
    return Response(
        json.dumps(body),
        status_code=status,
        media_type="application/problem+json",
        headers={
            "Cache-Control": "no-store",
            **(headers or {}),
            **more,
        },
    )


def _away(error: Exception) -> Response:
    _log.warning("a request failed", action="request-failed", error=str(error))
    words = "our fault, not yours: the service is away; try again soon"
    again = {"Retry-After": str(RETRY_S)}
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "away", words, again)


def _incident(error: Exception) -> Response:
    incident = secrets.token_hex(4)
    _log.error("a request failed", action="incident", incident=incident, exc_info=error)
    words = f"this is a bug in Podium; please report incident {incident}"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "incident", words)


def _slug(status: HTTPStatus) -> str:
    return status.phrase.lower().replace(" ", "-")


def _words(status: HTTPStatus) -> str:
    if status is HTTPStatus.NOT_FOUND:
        return "there is nothing at this address; check its path"
    return f"{status.phrase}: {status.description or 'see the status'}"
