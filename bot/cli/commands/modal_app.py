"""`podium modal`: what it takes to judge on Modal's GPUs."""

import asyncio

import typer

from bot.cli.context import AsJson, command_line
from bot.cli.json_output import dumps


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(help="Judge on Modal's GPUs.", no_args_is_help=True)
    group.callback()(_only_a_group)
    group.command()(deploy)
    app.add_typer(group, name="modal")


def _only_a_group() -> None:
    """Judge on Modal's GPUs."""


def deploy(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """Build the image and deploy the harness; again after every update of Podium."""
    line = command_line(ctx)
    page = asyncio.run(line.installation.deploy_to_modal())
    line.out.out(dumps({"page": page}) if as_json else f"deployed: {page}", highlight=False)
