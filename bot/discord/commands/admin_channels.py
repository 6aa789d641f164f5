"""`/admin channel-allow|channel-forbid`: where submissions are taken on this server."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import discord
from discord import app_commands

from bot.discord.context import Door, door_of
from bot.discord.groups import Tree, group
from bot.discord.guilds import house
from bot.discord.responses import answering
from bot.discord.roles import ADMIN, require
from bot.domain.errors import UserError
from bot.domain.person import Person
from bot.ports import Store
from bot.services.audit import audited


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "admin")
    parent.add_command(allow)
    parent.add_command(forbid)


@app_commands.command(name="channel-allow", description="Take submissions in a channel")
@app_commands.describe(channel="The channel; the first one named replaces #submissions")
async def allow(interaction: discord.Interaction[Any], channel: discord.TextChannel) -> None:
    """Beside those that are allowed already."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        actor = await door.person(interaction.user)
        async with _audited(door, actor, "channel-allow", channel) as tx:
            await tx.moderation.open_room(house(channel.guild.id), str(channel.id))
        await answer.say(f"Submissions are taken in {channel.mention}.")


@app_commands.command(name="channel-forbid", description="Take no more submissions in a channel")
@app_commands.describe(channel="The channel")
async def forbid(interaction: discord.Interaction[Any], channel: discord.TextChannel) -> None:
    """Without any allowed channel it is #submissions again."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        actor = await door.person(interaction.user)
        async with _audited(door, actor, "channel-forbid", channel) as tx:
            if not await tx.moderation.close_room(house(channel.guild.id), str(channel.id)):
                raise UserError("not-allowed", f"#{channel.name} was not allowed by name")
        await answer.say(f"Submissions are not taken in {channel.mention} any more.")


def _audited(
    door: Door, actor: Person, action: str, channel: discord.TextChannel
) -> AbstractAsyncContextManager[Store]:
    subject = f"channel {channel.id} of guild {channel.guild.id}"
    return audited(door.store, actor.id, action, subject, reason=channel.name)
