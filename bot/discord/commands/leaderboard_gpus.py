"""`/leaderboard compare-gpus`: how everyone's best kernel scales over a board's GPU types."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.viewers import viewer_of
from bot.reports.charts import scaling_report
from bot.services.trends import scaling


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(compare_gpus)


@app_commands.command(
    name="compare-gpus", description="Everyone's best time on each GPU type of a board"
)
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def compare_gpus(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """A table, and a plot where there are several GPU types."""
    async with answering(interaction) as answer:
        viewer = await viewer_of(interaction)
        found = await scaling(door_of(interaction).store, viewer, leaderboard_name)
        await answer.show(scaling_report(found))
