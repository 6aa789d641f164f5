"""`podium modal`: what it takes to judge on Modal's GPUs."""

import asyncio

import typer

from bot.cli.context import AsJson, command_line
from bot.cli.json_output import dumps

GROUP = "Set up judging on Modal's GPUs."


def deploy(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Build and deploy the harness on Modal; repeat after each Podium update."""
    line = command_line(ctx)
    page = asyncio.run(line.installation.deploy_to_modal())
    line.out.out(dumps({"page": page}) if as_json else f"deployed: {page}", highlight=False)
