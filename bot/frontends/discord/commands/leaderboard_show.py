"""`/leaderboard show`: the standings of a board on one GPU type, with the season's plot."""

from typing import Any

import discord
from discord import app_commands

from bot.frontends.discord import options
from bot.frontends.discord.answers import answering
from bot.frontends.discord.door import door_of
from bot.frontends.discord.groups import Tree, group
from bot.frontends.discord.pages import first_page
from bot.frontends.discord.viewers import viewer_of
from bot.services.season import season


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show)


@app_commands.command(description="The ranking of a board, and how its best time fell")
@app_commands.describe(leaderboard_name="The board", gpu="A GPU type; a menu has the others")
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def show(
    interaction: discord.Interaction[Any], leaderboard_name: str, gpu: str | None = None
) -> None:
    """The first page; buttons lead to the others, a menu to the other GPU types."""
    async with answering(interaction) as answer:
        door = door_of(interaction)
        viewer = await viewer_of(interaction)
        found = await season(door.store, door.clock, viewer, leaderboard_name, gpu=gpu)
        await answer.show(*first_page(found))
