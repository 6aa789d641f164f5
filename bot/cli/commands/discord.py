"""`podium discord`: adds the bot to a server."""

import asyncio
from typing import Annotated

import typer

from bot.cli.context import AsJson, command_line

GROUP = "Add the bot to a Discord server."


def invite(
    ctx: typer.Context,
    *,
    application: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Discord application id (default: the application of DISCORD_TOKEN)",
            metavar="ID",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the link that adds the bot to a Discord server."""
    line = command_line(ctx)
    link = asyncio.run(line.installation.discord_invite(application))
    line.answer(link, {"invite": link}, as_json=as_json)
