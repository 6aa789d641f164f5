"""`podium template`: writes a template."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import (
    AsJson,
    CommandLine,
    DataFolder,
    ServerUrl,
    Where,
    client_for_viewer,
    command_line,
)
from bot.cli.json_output import dumps
from bot.domain.errors import UserError


@dataclass(frozen=True, slots=True)
class _Wish:
    board: str
    lang: str | None
    file: Path


def template(
    ctx: typer.Context,
    board: Annotated[str, typer.Argument(help="Board name")],
    file: Annotated[Path, typer.Argument(help="Output file; must not exist")],
    *,
    lang: Annotated[str | None, typer.Option(help="Language of the template")] = None,
    data: DataFolder = None,
    server: ServerUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write a board's starter file, including the header that names the board."""
    line = command_line(ctx)
    suffix = asyncio.run(_template(line, Where(data, server), _Wish(board, lang, file)))
    if as_json:
        line.out.out(dumps({"board": board, "file": str(file)}), highlight=False)
    else:
        line.out.out(f"{file}: next: podium submit {file}{suffix}", highlight=False)


async def _template(line: CommandLine, where: Where, wish: _Wish) -> str:
    """Write the file; return the options that a further command needs for the same server."""
    async with client_for_viewer(line, where) as client:
        _write(wish.file, await client.template(wish.board, wish.lang))
        return client.suffix


def _write(file: Path, content: bytes) -> None:
    """Create the file; UserError when it exists, as it may be somebody's work."""
    try:
        with file.open("xb") as made:
            made.write(content)
    except FileExistsError:
        raise UserError("file-exists", f"{file} already exists; choose another name") from None
    except OSError as error:
        raise UserError(
            "cannot-write", f"{file}: cannot be written ({error.strerror}); choose another name"
        ) from error
