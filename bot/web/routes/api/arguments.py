"""What routes take from an address, within the limits of what can be looked up."""

from typing import Annotated

from fastapi import Header, Path, Query
from pydantic import Field

from bot.domain.api.base import MOST_ON_A_PAGE
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.once import KEPT, KEY_PATTERN, LONGEST_KEY, key_of

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
    f"makes no second one, for {KEPT.total_seconds() / 3600:.0f} h; another request with it is "
    "refused"
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
    """The key of a request that may be repeated; UserError `bad-key` for one that is none."""
    return None if header is None else key_of(header)


def number_of(cursor: str | None) -> int | None:
    """What a cursor stands for; UserError `bad-cursor` for one that was not given here."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise UserError("bad-cursor", "this is no cursor; send the `next` of the page before")
    return int(cursor)
