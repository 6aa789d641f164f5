"""The OpenAPI description, and the parameters and bodies that routes share."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Path, Query, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from bot.domain.api import accounts, admin, publishing, submissions
from bot.domain.api.base import MOST_ON_A_PAGE, PATH, ProblemDetails, RequestBody, Time
from bot.domain.api.boards import BestTime, BoardAnswer, BoardLine
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.leaderboard import BoardOverview
from bot.domain.scoring import ScoreValue
from bot.domain.submission import KEY_PATTERN, KEY_TTL, LONGEST_KEY, key_of
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
    ProblemDetails,
    submissions.SubmissionOrder,
    submissions.Again,
    submissions.Withdrawal,
    publishing.BoardOptions,
    publishing.GuestsOrder,
    publishing.RejudgeOrder,
    accounts.TokenOrder,
    admin.DecisionBody,
    admin.PersonDecision,
    admin.PauseDecision,
    admin.LimitKey,
    admin.LimitOrder,
)
"""Bodies that routes do not declare to FastAPI, which would read them at any length."""
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
"""FastAPI's own errors, replaced by problem documents."""
_REF = "#/components/schemas/{model}"


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> JSONResponse:
    """The description of all this."""
    app: FastAPI = request.app
    if not hasattr(app.state, "api_description"):
        app.state.api_description = describe(app)
    return JSONResponse(app.state.api_description)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description of this API's routes."""
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
    schema = {"$ref": _REF.format(model=ProblemDetails.__name__)}
    for status, words in _REFUSALS.items():
        content = {"application/problem+json": {"schema": schema}}
        operation["responses"][status] = {"description": words, "content": content}


def _describe_token(operation: dict[str, Any]) -> None:
    """Describe whether a token is required, or only shows more."""
    schemes = {name for each in operation.pop("security", []) for name in each}
    if schemes:
        token: dict[str, list[str]] = {TOKEN: []}
        operation["security"] = [token] if NEEDED in schemes else [{}, token]


def _describe_condition(operation: dict[str, Any]) -> None:
    """Describe a required `If-Match`, and the response when it is missing."""
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


_ROOM = 1 << 63
_CURSOR = "Where the page before this one ended, as its `next` says"

BoardName = Annotated[str, Path(max_length=64, description="A board's name", examples=["softmax"])]
BoardQuery = Annotated[str | None, Query(max_length=64, description="Only this board")]
GpuQuery = Annotated[str | None, Field(max_length=32, description="Only this GPU type")]
VersionQuery = Annotated[
    int | None, Field(ge=1, lt=1 << 31, description="This task version, not the present one")
]
SubmissionNumber = Annotated[
    SubmissionId, Path(ge=-_ROOM, lt=_ROOM, description="A submission's number", examples=[17])
]
PageLimit = Annotated[int, Query(ge=1, le=MOST_ON_A_PAGE, description="At most so many")]
Cursor = Annotated[
    str | None,
    Query(max_length=18, description=_CURSOR, json_schema_extra={"pattern": "^[0-9]{1,18}$"}),
]
NameCursor = Annotated[str | None, Query(max_length=64, description=_CURSOR)]

_REPEAT = (
    "A new UUID, say. The same request with the same key is answered with the first submission and "
    f"makes no second one, for {KEY_TTL.total_seconds() / 3600:.0f} h; another request with "
    "it is refused"
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
        raise UserError("bad-cursor", "this is no cursor; send the `next` of the page before")
    return int(cursor)


NO_STORE = {"Cache-Control": "no-store"}


def takes(kind: type[RequestBody], *, needed: bool = True) -> dict[str, Any]:
    """Return `openapi_extra` for a route that reads this JSON body."""
    content = {"application/json": {"schema": schema_of(kind)}}
    return {"requestBody": {"required": needed, "content": content}}


def schema_of(kind: type[RequestBody]) -> dict[str, str]:
    """Return the reference to a type among the components."""
    return {"$ref": f"#/components/schemas/{kind.__name__}"}


def unkept(response: Response) -> None:
    """Forbid caching of the response: it is for one reader, at one time.

    Also forbid content sniffing, so that other sites cannot load it as a script.
    """
    response.headers.update(NO_STORE)


def time_answer(value: ScoreValue | None) -> Time | None:
    """Return a time, or None."""
    if value is None:
        return None
    return Time(time_ns=value.time_ns, half_width_ns=value.half_width_ns)


def board_line(board: Board, now: datetime) -> BoardLine:
    """Return a board's public data, without its guests."""
    return BoardLine(
        name=board.name,
        id=board.id,
        gpus=board.gpus,
        deadline=board.deadline,
        is_open=board.is_open(now),
        created_at=board.created_at,
        creator_id=board.creator,
        task_version_id=board.task_version,
        visibility=board.access.visibility,
        source_visibility=board.access.source,
        pools=dict(board.pins),
    )


def board_answer(found: BoardOverview, now: datetime) -> BoardAnswer:
    """Return a board with its activity."""
    best = tuple(
        BestTime(
            gpu=score.gpu,
            person=score.person_name,
            submission=score.submission,
            time_ns=score.value.time_ns,
            half_width_ns=score.value.half_width_ns,
        )
        for score in found.best
    )
    line = dict(board_line(found.board, now))
    return BoardAnswer(**line, participants=found.participants, best=best)
