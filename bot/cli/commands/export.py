"""`podium export`: a board with its sources and every measurement, for researchers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import (
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    client_for_person,
    command_line,
)
from bot.cli.datasets import DataFormat, made_whole, require, written
from bot.cli.json_output import dumps
from bot.domain.api.boards import ExportEnd, ExportHead, ExportPiece, ExportRows, ExportSource
from bot.reports import export as dataset

_SOURCES = "Each source is stored once in `sources/`, under the SHA-256 of its content."


def export(
    ctx: typer.Context,
    board: Annotated[str, typer.Argument(help="Board name")],
    out: Annotated[
        Path, typer.Option("--out", help="Output folder; must not exist", metavar="DIR")
    ],
    *,
    form: Annotated[DataFormat, typer.Option("--format")] = DataFormat.PARQUET,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Export a board to a folder: submissions, results, raw samples and sources."""
    line = command_line(ctx)
    require(form)
    submissions = asyncio.run(_export(line, Where(data, server), board, (out, form)))
    if as_json:
        line.out.out(dumps({"folder": str(out), "submissions": submissions}), highlight=False)
    else:
        words = f"{out}: {submissions} submissions; README.md says what each column means"
        line.out.out(words, highlight=False)


async def _export(
    line: CommandLine, where: Where, board: str, wish: tuple[Path, DataFormat]
) -> int:
    out, form = wish
    async with client_for_person(line, where) as client, aclosing(client.export(board)) as pieces:
        head = await anext(pieces)  # a wrong name leaves no folder behind
        if not isinstance(head, ExportHead):
            raise TypeError(f"an export began with {head.kind}")
        with made_whole(out) as folder:
            words = dataset.codebook(head.board, head.submissions, _SOURCES)
            (folder / "README.md").write_text(words, "utf-8")
            await _write(pieces, folder, form)
        return head.submissions


async def _write(pieces: AsyncIterator[ExportPiece], folder: Path, form: DataFormat) -> None:
    """Write every piece to its file; unknown tables of a newer server are ignored."""
    (folder / "sources").mkdir()
    with ExitStack() as stack:
        tables = {
            each.name: (each, stack.enter_context(written(folder, each, form)))
            for each in dataset.TABLES
        }
        async for piece in pieces:
            match piece:
                case ExportRows() if piece.table in tables:
                    table, file = tables[piece.table]
                    names = [field.name for field in table.fields]
                    file.put({name: row.get(name) for name in names} for row in piece.rows)
                case ExportSource():
                    data = piece.text.encode("utf-8", "surrogatepass")
                    (folder / "sources" / piece.sha256).write_bytes(data)
                case ExportHead() | ExportRows() | ExportEnd():
                    pass
