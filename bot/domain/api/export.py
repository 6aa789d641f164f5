"""The lines of an export of a board or a competition."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from bot.domain.api.base import ResponseBody

MEDIA_TYPE = "application/x-ndjson"


class ExportHead(ResponseBody):
    """The first line: the board of the export."""

    kind: Literal["board"] = "board"
    board: str
    submissions: int


class ExportCompetition(ResponseBody):
    """The first line of a competition's export.

    After it come the rows of its ranking, the whole export of each board including its `end`, and
    one more `end`.
    """

    kind: Literal["competition"] = "competition"
    competition: str
    boards: tuple[str, ...]


class ExportRows(ResponseBody):
    """Rows of one table, each with its values by column."""

    kind: Literal["rows"] = "rows"
    table: str
    rows: tuple[dict[str, str | int | float | bool | None], ...]


class ExportSource(ResponseBody):
    """A submitted file with the SHA-256 of its bytes; equal files appear once."""

    kind: Literal["source"] = "source"
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    text: str


class ExportEnd(ResponseBody):
    """The last line; without it, the export is incomplete."""

    kind: Literal["end"] = "end"


ExportPiece = Annotated[
    ExportCompetition | ExportHead | ExportRows | ExportSource | ExportEnd,
    Field(discriminator="kind"),
]
PIECE: TypeAdapter[ExportPiece] = TypeAdapter(ExportPiece)
"""Parses a line of an export."""
