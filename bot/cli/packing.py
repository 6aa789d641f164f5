"""`podium task pack`: a task as the one zip that a server takes."""

from pathlib import Path
from typing import Annotated

import typer

from bot.cli.context import AsJson, command_line
from bot.cli.files import Root
from bot.cli.json_output import dumps
from bot.domain.archive import read_zip, write_zip
from bot.domain.errors import UserError
from bot.domain.task_file import parse_task


def pack(
    ctx: typer.Context,
    place: Annotated[Path, typer.Argument(metavar="DIR", help="The task's folder")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="ZIP", help="Else NAME.zip here; replaced")
    ] = None,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Make one zip of a task, with what it takes from beside its folder."""
    line = command_line(ctx)
    bundle = line.installation.read_task(place, root)
    file = Path(f"{bundle.name}.zip") if out is None else out
    packed = write_zip(bundle)
    again = read_zip(packed, name=file.stem)
    parse_task(again)  # as whoever takes it will read it
    try:
        file.write_bytes(packed)
    except OSError as error:
        raise UserError("cannot-write", f"{file}: cannot be written ({error.strerror})") from error
    if as_json:
        line.out.out(dumps({"zip": str(file), "files": sorted(again.files)}), highlight=False)
        return
    words = f"{file}: {len(again.files)} files, {len(packed):,} bytes; next: "
    line.out.out(f"{words}podium task publish {file}, or any form that takes a task zip")
