"""The server's error handler: returns each family of errors as a problem document (RFC 9457)."""

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse
from starlette.routing import Match

from bot.domain.accounts import ANYBODY
from bot.domain.errors import StoreError, UserError, fault_words
from bot.web import rendering, sessions
from bot.web.context import context_of
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
    "competition-exists": HTTPStatus.CONFLICT,
    "not-open": HTTPStatus.CONFLICT,
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
    "quota": HTTPStatus.TOO_MANY_REQUESTS,
    "signed-out": HTTPStatus.UNAUTHORIZED,
    "slow-body": HTTPStatus.REQUEST_TIMEOUT,
    "unchanged": HTTPStatus.CONFLICT,
    "stale-match": HTTPStatus.PRECONDITION_FAILED,
    "too-large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "too-many-checks": HTTPStatus.CONFLICT,
    "too-many-competitions": HTTPStatus.CONFLICT,
    "too-many-exports": HTTPStatus.CONFLICT,
    "too-many-tokens": HTTPStatus.CONFLICT,
    "zip-gone": HTTPStatus.CONFLICT,
}
"""HTTP statuses of UserErrors by code; other `unknown-...` codes are 404, all others 400."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_UNKNOWN_PREFIX = "unknown-"
_INTERNAL_ERRORS = (StoreError, RunnerError)


def add_error_handlers(app: FastAPI) -> None:
    """Return every error of the application as a problem document, or a page for a browser."""
    for kind in (UserError, *_INTERNAL_ERRORS, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _handle)


class MethodError(HTTPException):
    """Another method is required; the error lists all methods of the path."""

    def __init__(self, allowed: Iterable[str]) -> None:
        methods = {*allowed} | ({"HEAD"} if "GET" in allowed else set())
        headers = {"Allow": ", ".join(sorted(methods))}
        super().__init__(HTTPStatus.METHOD_NOT_ALLOWED, headers=headers)


async def _handle(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.NOT_FOUND:
        address = _with_other_slash(request)
        if address is not None:
            return RedirectResponse(address)
    if not rendering.wants_page(request):
        return await error_response(request, error)
    if isinstance(error, RequestValidationError):
        error = _address_error(error)
    frame = {} if isinstance(error, _INTERNAL_ERRORS) else await _frame(request)
    return rendering.as_page(request, await error_response(request, error), frame)


def _with_other_slash(request: Request) -> str | None:
    """Return the address without its slash at the end, or with one, if there is such a route.

    Starlette's own redirect would name the host that the client sent.
    """
    path = request.url.path
    other = path.rstrip("/") if path.endswith("/") else f"{path}/"
    other = f"/{other.lstrip('/')}"  # a path that begins with two slashes would be another host
    scope = {**request.scope, "path": other}
    if path == other or all(each.matches(scope)[0] is Match.NONE for each in request.app.routes):
        return None
    return str(URL(other).replace(query=request.url.query))


def _address_error(error: RequestValidationError) -> Exception:
    """Return the error of an invalid address, worded for people who followed or edited it."""
    parts = {str(part) for each in error.errors() for part in each["loc"][:1]}
    if parts == {"path"}:
        return HTTPException(HTTPStatus.NOT_FOUND)
    names = ", ".join(sorted({f"“{each['loc'][-1]}”" for each in error.errors()}))
    return UserError("bad-address", f"{names} cannot have this value; change it and try again")


async def _frame(request: Request) -> dict[str, Any]:
    """Return the values of the page's header; none when the database does not answer."""
    try:
        browser = await sessions.browser_of(request)
        viewer = ANYBODY if browser is None else browser.session.caller
        return rendering.frame_of(request, viewer)
    except StoreError:
        return {}


async def error_response(request: Request, error: Exception) -> Response:
    """Return the response to a failed request."""
    match error:
        case UserError():
            headers = _retry_after(error, context_of(request).clock.now()) if error.moments else {}
            return problem(status_of(error.code), error.code, error.message, headers)
        case StoreError() | RunnerError():
            return _unavailable(error)
        case HTTPException():
            status = HTTPStatus(error.status_code)
            headers = dict(error.headers or {})
            is_allow_set = isinstance(error, MethodError) or "app" not in request.scope
            if status is HTTPStatus.METHOD_NOT_ALLOWED and not is_allow_set:
                headers["Allow"] = ", ".join(_allowed_methods(request))
            code = status.phrase.lower().replace(" ", "-")
            return problem(status, code, _http_detail(status), headers)
        case RequestValidationError():
            faults = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {fault_words(each)}" for each in error.errors()
            )
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", faults)
        case _:
            return _incident(error)


def _allowed_methods(request: Request) -> Iterator[str]:
    """Yield all methods of the path; one route knows only its own."""
    for method in _METHODS:
        scope = {**request.scope, "method": "GET" if method == "HEAD" else method}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            yield method


def _retry_after(error: UserError, now: datetime) -> dict[str, str]:
    """Return a Retry-After header, if the error says when to retry."""
    if status_of(error.code) is not HTTPStatus.TOO_MANY_REQUESTS:
        return {}
    wait = max(error.moments.values()) - now
    return {"Retry-After": str(max(1, math.ceil(wait.total_seconds())))}


def status_of(code: str) -> HTTPStatus:
    """Return the status for a UserError's code."""
    missing = code.startswith(_UNKNOWN_PREFIX)
    return _STATUSES.get(code, HTTPStatus.NOT_FOUND if missing else HTTPStatus.BAD_REQUEST)


def problem(
    status: HTTPStatus, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a problem document; `code` is for programs, `detail` says what to do."""
    challenge = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    body = {"title": status.phrase, "status": int(status), "code": code, "detail": detail}
    return Response(
        json.dumps(body),
        status_code=status,
        media_type="application/problem+json",
        headers={"Cache-Control": "no-store", **(headers or {}), **challenge},
    )


def _unavailable(error: Exception) -> Response:
    _log.warning("a request failed", action="request-failed", error=str(error))
    detail = "the service is unavailable, through no fault of yours; try again soon"
    headers = {"Retry-After": str(RETRY_S)}
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "away", detail, headers)


def _incident(error: Exception) -> Response:
    incident = secrets.token_hex(4)
    _log.error("a request failed", action="incident", incident=incident, exc_info=error)
    detail = f"this is a bug in Podium; please report incident {incident}"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "incident", detail)


def _http_detail(status: HTTPStatus) -> str:
    if status is HTTPStatus.NOT_FOUND:
        return "there is nothing at this address; check its path"
    return f"{status.phrase}: {status.description or 'see the status'}"
