"""The door's one handler: every family of errors as a problem document (RFC 9457)."""

import json
import secrets
from collections.abc import Mapping
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from bot.domain.errors import StoreError, UserError
from runners.contract.runner import RunnerError

_log = structlog.get_logger(__name__)

RETRY_S = 2
"""After how many seconds another try makes sense while the database is away."""
_STATUSES = {
    "bad-token": HTTPStatus.UNAUTHORIZED,
    "harness-version": HTTPStatus.CONFLICT,
    "large-body": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "lease-lost": HTTPStatus.CONFLICT,
    "no-answer": HTTPStatus.UNPROCESSABLE_ENTITY,
    "slow-body": HTTPStatus.REQUEST_TIMEOUT,
}
"""Of a person's errors by their code; all others are bad requests."""
_OURS = (StoreError, RunnerError)


def handle_failures(app: FastAPI) -> None:
    """Make every error of the application a problem document."""
    for family in (UserError, *_OURS, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(family, answer_to)


async def answer_to(_: Request, error: Exception) -> Response:
    """The answer to a request that failed."""
    match error:
        case UserError():
            status = _STATUSES.get(error.code, HTTPStatus.BAD_REQUEST)
            return problem(status, error.code, error.message)
        case StoreError() | RunnerError():
            return _away(error)
        case HTTPException():
            status = HTTPStatus(error.status_code)
            return problem(status, _slug(status), _words(status), dict(error.headers or {}))
        case RequestValidationError():
            faults = "; ".join(
                f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()
            )
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad-request", faults)
        case _:
            return _incident(error)


def problem(
    status: HTTPStatus, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """A problem document; `code` is for programs, `detail` says what to do."""
    more = {"WWW-Authenticate": "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
    body = {"title": status.phrase, "status": int(status), "code": code, "detail": detail}
    return Response(
        json.dumps(body),
        status_code=status,
        media_type="application/problem+json",
        headers={"Cache-Control": "no-store", **(headers or {}), **more},
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
