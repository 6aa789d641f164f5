"""`/leaderboard show`: the standings of a board on one GPU type, with the season's plot."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.pages import MOST_AT_ONCE, beside, first_page
from bot.discord.responses import answering
from bot.discord.viewers import viewer_of
from bot.domain.errors import UserError
from bot.services.season import season


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show)


@app_commands.command(description="The ranking of a board, and how its best time fell")
@app_commands.describe(
    leaderboard_name="The board", gpu="GPU types, separated by commas; a menu has the others"
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def show(
    interaction: discord.Interaction[Any], leaderboard_name: str, gpu: str | None = None
) -> None:
    """The first page; buttons lead to the others, a menu to the other GPU types.

    Of several GPU types the best ranks of each.
    """
    async with answering(interaction) as answer:
        door = door_of(interaction)
        viewer = await viewer_of(interaction)
        parts = [each.strip() for each in (gpu or "").split(",")]
        names: list[str | None] = list(dict.fromkeys(each for each in parts if each))
        if len(names) > MOST_AT_ONCE:
            raise UserError("usage", f"at most {MOST_AT_ONCE} GPU types are shown at once")
        found = [
            await season(door.store, door.clock, viewer, leaderboard_name, gpu=each)
            for each in names or [None]
        ]
        await answer.show(*(first_page(found[0]) if len(found) == 1 else beside(found)))
