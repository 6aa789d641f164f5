"""The OpenAPI description, and the parameters and bodies that routes share."""

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from bot.domain.api import accounts, admin, finals, publishing, submissions
from bot.domain.api.base import MOST_ON_A_PAGE, PATH, ProblemDetails, RequestBody
from bot.domain.api.examples import EXAMPLES
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.submission import KEY_PATTERN, KEY_TTL, LONGEST_KEY, key_of
from bot.web.auth import NEEDED, TOKEN

router = APIRouter()

_ABOUT = """
Leaderboards for GPU kernels. Times are in nanoseconds, dates in UTC.

Send a token as `Authorization: Bearer TOKEN`; what is public needs none. A token has the scope
`read`, `submit` or `admin`, and an expiry date.

Every error is a problem document (RFC 9457): `code` is for programs, `detail` says what to do.
`RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` say how many requests are left and
after how many seconds all are available again; `Retry-After` comes with every 429.
"""
_BODIES: tuple[type[BaseModel], ...] = (
    ProblemDetails,
    submissions.SubmissionOrder,
    submissions.RerunOrder,
    submissions.Withdrawal,
    publishing.BoardOptions,
    publishing.GuestsOrder,
    publishing.RejudgeOrder,
    publishing.ExtendOrder,
    accounts.TokenOrder,
    admin.DecisionBody,
    admin.BanOrder,
    admin.PersonDecision,
    admin.PauseDecision,
    admin.LimitKey,
    admin.LimitOrder,
    admin.QuotaBody,
    admin.QuotaOrder,
    finals.FinalOrder,
    finals.FinalKey,
)
"""Bodies that routes do not declare to FastAPI, because it would read bodies of any length."""
_ERRORS = {
    "400": "The request is invalid",
    "401": "The token is missing, unknown, expired or revoked",
    "403": "The person or the token may not do this",
    "404": "There is nothing of this name that you may see",
    "408": "The body took too long to arrive",
    "409": "Not possible in the current state",
    "412": "The board has changed since the `ETag` that was sent",
    "413": "What was sent is too long",
    "422": "A part of the address or a header is invalid",
    "428": "An `If-Match` is needed",
    "429": "Too many requests or submissions; `Retry-After` says when to try again",
    "503": "The service is temporarily unavailable",
}
_UNUSED = ("HTTPValidationError", "ValidationError")
"""FastAPI's own errors, replaced by problem documents."""
REF = "#/components/schemas/{model}"
"""The reference to a type among the components."""


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The OpenAPI description of this API."""
    app: FastAPI = request.app
    if not hasattr(app.state, "api_description"):
        app.state.api_description = describe(app)
    return JSONResponse(app.state.api_description)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description of this API's routes."""
    description = get_openapi(
        title="Podium",
        version="1",
        summary="Boards, standings and submissions of one Podium",
        description=_ABOUT,
        routes=app.routes,
    )
    description["paths"] = {
        path: operations
        for path, operations in description["paths"].items()
        if path.startswith(PATH)
    }
    for operations in description["paths"].values():
        for operation in operations.values():
            _describe_errors(operation)
            _describe_token(operation)
            _describe_condition(operation)
    del description["components"]["securitySchemes"][NEEDED]
    schemas = description["components"]["schemas"]
    for name in _UNUSED:
        schemas.pop(name, None)
    _describe_bodies(schemas)
    return description


def _describe_errors(operation: dict[str, Any]) -> None:
    schema = schema_of(ProblemDetails)
    for status, words in _ERRORS.items():
        content = {"application/problem+json": {"schema": schema}}
        operation["responses"][status] = {"description": words, "content": content}


def _describe_token(operation: dict[str, Any]) -> None:
    """Describe whether a token is required, or optional because it only shows more."""
    schemes = {name for each in operation.pop("security", []) for name in each}
    if schemes:
        token: dict[str, list[str]] = {TOKEN: []}
        operation["security"] = [token] if NEEDED in schemes else [{}, token]


def _describe_condition(operation: dict[str, Any]) -> None:
    """Describe `If-Match` as required; the route itself answers a request without it."""
    for parameter in operation.get("parameters", []):
        if parameter["name"].lower() == "if-match":
            parameter |= {"required": True, "schema": {"type": "string", "maxLength": 100}}


def _describe_bodies(schemas: dict[str, Any]) -> None:
    for kind in _BODIES:
        schema = kind.model_json_schema(ref_template=REF)
        schemas.update(schema.pop("$defs", {}))
        schemas[kind.__name__] = schema
    for name, example in EXAMPLES.items():
        schemas[name]["examples"] = [example]


_ID_LIMIT = 1 << 63
_CURSOR = "The `next` of the previous page"

BoardName = Annotated[str, Path(max_length=64, description="A board's name", examples=["softmax"])]
BoardQuery = Annotated[str | None, Query(max_length=64, description="Only this board")]
GpuQuery = Annotated[str | None, Field(max_length=32, description="Only this GPU type")]
VersionQuery = Annotated[
    int | None, Field(ge=1, lt=1 << 31, description="This task version, not the current one")
]
SubmissionNumber = Annotated[
    SubmissionId,
    Path(ge=-_ID_LIMIT, lt=_ID_LIMIT, description="A submission's number", examples=[17]),
]
PageLimit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="The most entries")]
Cursor = Annotated[
    str | None,
    Query(max_length=18, description=_CURSOR, json_schema_extra={"pattern": "^[0-9]{1,18}$"}),
]
NameCursor = Annotated[str | None, Query(max_length=64, description=_CURSOR)]

_REPEAT = (
    "Such as a new UUID. The same request with the same key is answered with the first submission "
    f"and makes no second one, for {KEY_TTL.total_seconds() / 3600:.0f} h; a different request "
    "with the key is refused"
)
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=LONGEST_KEY + 2,
        description=_REPEAT,
        json_schema_extra={"pattern": KEY_PATTERN},
    ),
]


def key_in(header: str | None) -> str | None:
    """Return the idempotency key of a request; UserError `bad-key` when it is invalid."""
    return None if header is None else key_of(header)


def number_of(cursor: str | None) -> int | None:
    """Return a cursor's number; UserError `bad-cursor` for one not issued here."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise UserError("bad-cursor", "this is not a cursor; send the `next` of the previous page")
    return int(cursor)


NO_STORE = {"Cache-Control": "no-store"}


def takes(kind: type[RequestBody], *, needed: bool = True) -> dict[str, Any]:
    """Return `openapi_extra` for a route that reads this JSON body."""
    content = {"application/json": {"schema": schema_of(kind)}}
    return {"requestBody": {"required": needed, "content": content}}


def schema_of(kind: type[BaseModel]) -> dict[str, str]:
    """Return the reference to a type among the components."""
    return {"$ref": REF.format(model=kind.__name__)}


def uncached(response: Response) -> None:
    """Forbid caching of the response, which is for one reader at one time."""
    response.headers.update(NO_STORE)
