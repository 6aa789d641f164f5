"""`/openapi.json`: every route described for programs, with examples."""

from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from bot.domain.api import accounts, admin, publishing, submissions
from bot.domain.api.base import PATH, Problem
from bot.web.auth import NEEDED, TOKEN
from bot.web.routes.api.examples import EXAMPLES

router = APIRouter()

_ABOUT = """
Leaderboards for GPU kernels. Times are in nanoseconds, dates in UTC.

Send a token as `Authorization: Bearer TOKEN`; what is public needs none. A token has the scope
`read`, `submit` or `admin`, and ends at its time.

Every error is a problem document (RFC 9457): `code` is for programs, `detail` says what to do.
`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` tell how many requests are left and
after how many seconds all are there again; `Retry-After` comes with every 429.
"""
_BODIES: tuple[type[BaseModel], ...] = (
    Problem,
    submissions.SubmissionOrder,
    submissions.Again,
    submissions.Withdrawal,
    publishing.BoardWish,
    publishing.GuestsOrder,
    publishing.RejudgeOrder,
    accounts.TokenOrder,
    admin.Deed,
    admin.PersonDeed,
    admin.PauseDeed,
    admin.LimitKey,
    admin.LimitOrder,
)
"""What no route declares to FastAPI, which would read bodies of any length."""
_REFUSALS = {
    "400": "What was sent does not fit",
    "401": "The token is missing, unknown, expired or revoked",
    "403": "Neither person nor token may do this",
    "404": "There is nothing of this name that you may see",
    "408": "The body took too long to arrive",
    "409": "It is in a state in which this cannot be done",
    "412": "The board has moved on since the `ETag` that was sent",
    "413": "What was sent is too long",
    "422": "A part of the address or a header does not fit",
    "428": "An `If-Match` is needed",
    "429": "Too many requests or submissions; `Retry-After` says when to come again",
    "503": "The service is away for a moment",
}
_UNUSED = ("HTTPValidationError", "ValidationError")
"""FastAPI's own errors, in whose place there are problem documents."""
_REF = "#/components/schemas/{model}"


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The description of all this."""
    app: FastAPI = request.app
    if not hasattr(app.state, "api_description"):
        app.state.api_description = describe(app)
    return JSONResponse(app.state.api_description)


def describe(app: FastAPI) -> dict[str, Any]:
    """The routes of this interface in the words of OpenAPI."""
    found = get_openapi(
        title="Podium",
        version="1",
        summary="Boards, standings and submissions of one Podium",
        description=_ABOUT,
        routes=app.routes,
    )
    found["paths"] = {
        path: operations for path, operations in found["paths"].items() if path.startswith(PATH)
    }
    for operations in found["paths"].values():
        for operation in operations.values():
            _describe_refusals(operation)
            _describe_token(operation)
            _describe_condition(operation)
    del found["components"]["securitySchemes"][NEEDED]
    schemas = found["components"]["schemas"]
    for name in _UNUSED:
        schemas.pop(name, None)
    _describe_bodies(schemas)
    return found


def _describe_refusals(operation: dict[str, Any]) -> None:
    schema = {"$ref": _REF.format(model=Problem.__name__)}
    for status, words in _REFUSALS.items():
        content = {"application/problem+json": {"schema": schema}}
        operation["responses"][status] = {"description": words, "content": content}


def _describe_token(operation: dict[str, Any]) -> None:
    """Whether a token is needed, or only lets one see more."""
    schemes = {name for each in operation.pop("security", []) for name in each}
    if schemes:
        token: dict[str, list[str]] = {TOKEN: []}
        operation["security"] = [token] if NEEDED in schemes else [{}, token]


def _describe_condition(operation: dict[str, Any]) -> None:
    """An `If-Match` is needed where one is read; its own refusal says so, and what to send."""
    for parameter in operation.get("parameters", []):
        if parameter["name"].lower() == "if-match":
            parameter |= {"required": True, "schema": {"type": "string", "maxLength": 100}}


def _describe_bodies(schemas: dict[str, Any]) -> None:
    for kind in _BODIES:
        schema = kind.model_json_schema(ref_template=_REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[kind.__name__] = schema
    for name, example in EXAMPLES.items():
        schemas[name]["examples"] = [example]
