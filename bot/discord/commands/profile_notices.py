"""`/profile notices`: what a person wants to be told of by direct message."""

from typing import Any

import discord
from discord import app_commands

from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.notifications import kinds_in_words
from bot.discord.responses import answering
from bot.domain.notifications import NewsKind
from bot.services.notify import ask_for


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "profile").add_command(notices)


@app_commands.command(description="What you are told of by direct message; nothing unless you ask")
@app_commands.describe(
    deadline="A board closes within 24 hours",
    lost_rank="Somebody has taken your rank among the first ten",
    record="A board has a new best time",
)
async def notices(
    interaction: discord.Interaction[Any],
    *,
    deadline: bool | None = None,
    lost_rank: bool | None = None,
    record: bool | None = None,
) -> None:
    """Without a wish it only says what holds."""
    async with answering(interaction) as answer:
        door = door_of(interaction)
        person = await door.person(interaction.user)
        wishes = {
            NewsKind.DEADLINE: deadline,
            NewsKind.LOST_RANK: lost_rank,
            NewsKind.RECORD: record,
        }
        kinds = await ask_for(door.store, person.identity, wishes)
        await answer.say(f"You are told of: {kinds_in_words(kinds)}.")
