"""What goes wrong, in the evaluation server's words: one body for each kind of error."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bot.frontends.web.compat.evaluation_server.requests import BadRequestError
from bot.frontends.web.failures import answer_to

UNCACHED = {
    "Cache-Control": "no-cache, no-store, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "0",
}
_FOREIGN = {"content-length", "content-type", "cache-control"}
_UNKNOWN = "unknown-job"
_MOST_FAULTS = 20


class FormError(Exception):
    """A JSON object that is no request; it says where."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__("Invalid request format")
        self.faults = error.errors(include_input=False, include_url=False, include_context=False)


class NoJsonError(Exception):
    """A body that is no JSON object."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def answer(
    status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An answer that nobody on the way keeps."""
    return JSONResponse(body, status, {**(headers or {}), **UNCACHED})


async def wrong_form(_: Request, error: Exception) -> Response:
    """400 with each place that does not fit."""
    faults = error.faults if isinstance(error, FormError) else []
    named = [
        {
            "field": " -> ".join(str(part) for part in fault["loc"]),
            "message": fault["msg"],
            "type": fault["type"],
        }
        for fault in faults[:_MOST_FAULTS]
    ]
    body = {"error": str(error), "validation_errors": named, "status": "client_error"}
    return answer(400, body)


async def no_json(_: Request, error: Exception) -> Response:
    """422 in the form that FastAPI gives it."""
    kind = error.kind if isinstance(error, NoJsonError) else "value_error"
    return answer(422, {"detail": [{"type": kind, "loc": ["body"], "msg": str(error)}]})


async def no_route(_: Request, error: Exception) -> Response:
    """404 and 405 in the form that Starlette gives them."""
    if not isinstance(error, HTTPException):
        raise error
    return answer(error.status_code, {"detail": error.detail}, error.headers)


async def refused(request: Request, error: Exception) -> Response:
    """Any other error: status and words are those of the door's one handler."""
    problem = await answer_to(request, error)
    words = json.loads(bytes(problem.body))
    code = words["code"]
    status = problem.status_code
    body = {"error": words["detail"], "status": "client_error" if status < 500 else "error"}
    if code == _UNKNOWN:
        body["status"] = "error"
    elif status < 500:
        details = error.details if isinstance(error, BadRequestError) else {"code": code}
        body["details"] = details
    kept = {name: value for name, value in problem.headers.items() if name not in _FOREIGN}
    return answer(status, body, kept)
