"""`/admin export`: a board's submissions and results as files."""

import asyncio
from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.roles import ADMIN, require
from bot.discord.viewers import viewer_of
from bot.reports.export import export_report
from bot.services.export import export as export_board


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "admin").add_command(export)


@app_commands.command(description="Every submission and result of a board, as CSV and JSON")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def export(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """Three files, for this admin alone."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        viewer = await viewer_of(interaction)
        found = await export_board(door_of(interaction).store, viewer, leaderboard_name)
        await answer.show(await asyncio.to_thread(export_report, found))
