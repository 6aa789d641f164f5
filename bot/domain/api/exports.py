"""A board as it is handed out to researchers: pieces, each a line of JSON."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from bot.domain.api.base import Answer

MEDIA_TYPE = "application/x-ndjson"


class ExportHead(Answer):
    """The first piece: whose export it is."""

    kind: Literal["board"] = "board"
    board: str
    submissions: int


class ExportRows(Answer):
    """Lines of one of the tables, each by its columns."""

    kind: Literal["rows"] = "rows"
    table: str
    rows: tuple[dict[str, str | int | float | bool | None], ...]


class ExportSource(Answer):
    """A submitted file by the SHA-256 of its bytes; each comes once."""

    kind: Literal["source"] = "source"
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    text: str


class ExportEnd(Answer):
    """The last piece: without it the export has broken off."""

    kind: Literal["end"] = "end"


ExportPiece = Annotated[
    ExportHead | ExportRows | ExportSource | ExportEnd, Field(discriminator="kind")
]
PIECE: TypeAdapter[ExportPiece] = TypeAdapter(ExportPiece)
"""Reads a line."""
