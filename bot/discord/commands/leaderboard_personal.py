"""`/leaderboard show-personal`: one's own way on a board, as table and plot."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.viewers import viewer_of
from bot.reports.personal import personal_report
from bot.services.personal import personal


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show_personal)


@app_commands.command(
    name="show-personal", description="Your own submissions to a board, and your trend"
)
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def show_personal(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """Places, the plot of your ranked times, and what you have submitted."""
    async with answering(interaction) as answer:
        viewer = await viewer_of(interaction)
        found = await personal(door_of(interaction).store, viewer, leaderboard_name)
        await answer.show(personal_report(found))
