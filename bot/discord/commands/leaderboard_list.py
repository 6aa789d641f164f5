"""`/leaderboard list`: every board, open ones first."""

from typing import Any

import discord
from discord import app_commands

from bot.discord.groups import Tree, group
from bot.discord.pagination import Book, leaf
from bot.discord.responses import answering


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(list_boards)


@app_commands.command(name="list", description="Every board: open ones first, then ended ones")
async def list_boards(interaction: discord.Interaction[Any]) -> None:
    """One line for each board, in pages."""
    async with answering(interaction) as answer:
        await answer.say(*await leaf(interaction, Book.BOARDS))
