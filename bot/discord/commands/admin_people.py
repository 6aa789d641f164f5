"""`/admin ban|unban`: who may submit."""

from typing import Any

import discord
from discord import app_commands

from bot.discord.context import DOOR, door_of
from bot.discord.escaping import line
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.roles import admin_deed
from bot.services.moderation import ban as ban_person
from bot.services.moderation import unban as unban_person

_Reason = app_commands.Range[str, 1, 300]


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "admin")
    parent.add_command(ban)
    parent.add_command(unban)


@app_commands.command(description="Keep a person from submitting, and stop what is unfinished")
@app_commands.describe(who="The person", reason="Shown to the person")
async def ban(interaction: discord.Interaction[Any], who: discord.User, reason: _Reason) -> None:
    """What is unfinished is stopped; what has a result keeps it and its rank."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        await door.person(who)  # may never have submitted, and is banned nevertheless
        stopped = await ban_person(door.store, deed, f"{DOOR}:{who.id}")
        words = f"{line(who.name)} may not submit any more."
        if stopped:
            noun = "submission was" if stopped == 1 else "submissions were"
            words += f" {stopped} unfinished {noun} stopped."
        await answer.say(words)


@app_commands.command(description="Let a person submit again")
@app_commands.describe(who="The person", reason="Kept in the audit")
async def unban(interaction: discord.Interaction[Any], who: discord.User, reason: _Reason) -> None:
    """Ends the ban."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        await unban_person(door.store, deed, f"{DOOR}:{who.id}")
        await answer.say(f"{line(who.name)} may submit again.")
