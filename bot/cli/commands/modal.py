"""`podium modal`: sets up judging on Modal's GPUs."""

import asyncio

import typer

from bot.cli.context import AsJson, command_line

GROUP = "Set up judging on Modal's GPUs."


def deploy(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Build and deploy the harness on Modal; repeat after each Podium update."""
    line = command_line(ctx)
    page = asyncio.run(line.installation.deploy_to_modal())
    line.answer(f"deployed: {page}", {"page": page}, as_json=as_json)
