"""`/admin notices`: what a channel is told of."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import viewers
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.notifications import kinds_in_words
from bot.discord.responses import answering
from bot.discord.roles import ADMIN, require
from bot.domain.errors import UserError
from bot.domain.notifications import NewsKind
from bot.services.notify import ask_for


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "admin").add_command(notices)


@app_commands.command(description="What a channel is told of; nothing unless you ask")
@app_commands.describe(
    channel="The channel",
    deadline="A board closes within 24 hours",
    record="A board has a new best time",
)
async def notices(
    interaction: discord.Interaction[Any],
    *,
    channel: discord.TextChannel,
    deadline: bool | None = None,
    record: bool | None = None,
) -> None:
    """Of boards that not every member may see the channel is told nothing."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        if not channel.permissions_for(channel.guild.me).send_messages:
            raise UserError("not-allowed", f"I may not write in #{channel.name}; let me first")
        door = door_of(interaction)
        wishes = {NewsKind.DEADLINE: deadline, NewsKind.RECORD: record}
        actor = await door.person(interaction.user)
        subject = f"channel {channel.id} of guild {channel.guild.id}"
        async with door.store.transaction() as tx:
            told = kinds_in_words(await ask_for(tx, viewers.room(channel.id), wishes))
            await tx.audit.record(actor.id, "notices", subject, told)
        await answer.say(f"{channel.mention} is told of: {told}.")
