"""`/leaderboard show`: the standings of a board, on one GPU type or on each."""

from typing import Any

import discord
from discord import app_commands

from bot.frontends.discord import options
from bot.frontends.discord.answers import answering
from bot.frontends.discord.door import door_of
from bot.frontends.discord.draw import sheets
from bot.frontends.discord.groups import Tree, group
from bot.reports.standings import standings_report
from bot.services.standings import standings


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show)


@app_commands.command(description="The ranking of a board")
@app_commands.describe(leaderboard_name="The board", gpu="One GPU type; all of them without")
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def show(
    interaction: discord.Interaction[Any], leaderboard_name: str, gpu: str | None = None
) -> None:
    """One table for each GPU type."""
    async with answering(interaction) as answer:
        found = await standings(door_of(interaction).store, leaderboard_name, gpu)
        await answer.show_all([sheet for each in found for sheet in sheets(standings_report(each))])
