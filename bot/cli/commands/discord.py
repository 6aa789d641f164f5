"""`podium discord`: what it takes to have the bot in a guild."""

import asyncio
from typing import Annotated

import typer

from bot.cli.context import AsJson, command_line
from bot.cli.json_output import dumps

GROUP = "Have the bot in a Discord guild."


def invite(
    ctx: typer.Context,
    *,
    application: Annotated[
        int | None,
        typer.Option(
            min=1, help="The application's id; else the one of DISCORD_TOKEN", metavar="ID"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the link with which the person who manages a guild lets the bot in."""
    line = command_line(ctx)
    link = asyncio.run(line.installation.discord_invite(application))
    line.out.out(dumps({"invite": link}) if as_json else link, highlight=False)
