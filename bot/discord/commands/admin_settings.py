"""`/admin limit|unlimit|limits|channel-allow|channel-forbid|notices`: limits and channels."""

from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import discord
from discord import app_commands

from bot.discord import options, roles
from bot.discord.context import DiscordContext, context_of
from bot.discord.guilds import house
from bot.discord.notifications import kinds_in_words
from bot.discord.options import Tree, group
from bot.discord.responses import replying
from bot.discord.roles import ADMIN, admin_deed, require, viewer_of
from bot.domain.accounts import Person
from bot.domain.errors import UserError
from bot.domain.ids import BoardId
from bot.domain.moderation import RateLimit, span
from bot.domain.notifications import NewsKind
from bot.ports import Store
from bot.reports.admin import house_rules_report
from bot.services import moderation
from bot.services.audit import audited
from bot.services.lookup import find_board
from bot.services.moderation import submission_rules
from bot.services.notify import set_notifications
from runners.contract.task import Mode

_Reason = app_commands.Range[str, 0, 300]


async def _admin_settings(tree: Tree) -> None:
    """Add the commands."""
    parent = group(tree, "admin")
    parent.add_command(limit)
    parent.add_command(unlimit)
    parent.add_command(limits)


@app_commands.command(description="Limit everyone's submissions; without a board, on all of them")
@app_commands.describe(
    most="How many are taken",
    minutes="In how many minutes",
    leaderboard_name="One board; all of them without",
    mode="One mode; all of them without",
    reason="Kept in the audit",
)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def limit(
    interaction: discord.Interaction[Any],
    *,
    most: app_commands.Range[int, 1, 100_000],
    minutes: app_commands.Range[int, 1, 525_600],
    leaderboard_name: str | None = None,
    mode: Mode | None = None,
    reason: _Reason = "",
) -> None:
    """Replace the limit of the same board and mode."""
    async with replying(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = context_of(interaction)
        board = await _board(interaction, leaderboard_name)
        wanted = RateLimit(most, timedelta(minutes=minutes), board, mode)
        await moderation.set_limit(door.store, deed, wanted)
        await answer.say(f"At most {most} in {span(wanted.window)} are taken from one person.")


@app_commands.command(description="End the limit of just this board and mode")
@app_commands.describe(
    leaderboard_name="Its board; none for one that covers all of them",
    mode="Its mode; none for one that covers all of them",
    reason="Kept in the audit",
)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def unlimit(
    interaction: discord.Interaction[Any],
    *,
    leaderboard_name: str | None = None,
    mode: Mode | None = None,
    reason: _Reason = "",
) -> None:
    """Remove the limit of exactly this board and mode."""
    async with replying(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = context_of(interaction)
        board = await _board(interaction, leaderboard_name)
        await moderation.drop_limit(door.store, deed, board, mode)
        await answer.say("The limit is gone.")


@app_commands.command(description="What keeps submissions out: limits, pauses, bans")
async def limits(interaction: discord.Interaction[Any]) -> None:
    """Show a table of each kind."""
    async with replying(interaction) as answer:
        require(interaction, ADMIN)
        await answer.show(house_rules_report(await submission_rules(context_of(interaction).store)))


async def _board(interaction: discord.Interaction[Any], name: str | None) -> BoardId | None:
    if name is None:
        return None
    viewer = await viewer_of(interaction)
    return (await find_board(context_of(interaction).store, viewer, name)).id


async def _admin_channels(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "admin")
    parent.add_command(allow)
    parent.add_command(forbid)


@app_commands.command(name="channel-allow", description="Take submissions in a channel")
@app_commands.describe(channel="The channel; the first one named replaces #submissions")
async def allow(interaction: discord.Interaction[Any], channel: discord.TextChannel) -> None:
    """Add to the channels that are already allowed."""
    async with replying(interaction) as answer:
        require(interaction, ADMIN)
        door = context_of(interaction)
        actor = await door.person(interaction.user)
        async with _audited(door, actor, "channel-allow", channel) as tx:
            await tx.moderation.open_room(house(channel.guild.id), str(channel.id))
        await answer.say(f"Submissions are taken in {channel.mention}.")


@app_commands.command(name="channel-forbid", description="Take no more submissions in a channel")
@app_commands.describe(channel="The channel")
async def forbid(interaction: discord.Interaction[Any], channel: discord.TextChannel) -> None:
    """Without any allowed channel, #submissions applies again."""
    async with replying(interaction) as answer:
        require(interaction, ADMIN)
        door = context_of(interaction)
        actor = await door.person(interaction.user)
        async with _audited(door, actor, "channel-forbid", channel) as tx:
            if not await tx.moderation.close_room(house(channel.guild.id), str(channel.id)):
                raise UserError("not-allowed", f"#{channel.name} was not allowed by name")
        await answer.say(f"Submissions are not taken in {channel.mention} any more.")


def _audited(
    door: DiscordContext, actor: Person, action: str, channel: discord.TextChannel
) -> AbstractAsyncContextManager[Store]:
    subject = f"channel {channel.id} of guild {channel.guild.id}"
    return audited(door.store, actor.id, action, subject, reason=channel.name)


async def _admin_notices(tree: Tree) -> None:
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
    """Boards that not every member may see are never announced in the channel."""
    async with replying(interaction) as answer:
        require(interaction, ADMIN)
        if not channel.permissions_for(channel.guild.me).send_messages:
            raise UserError("not-allowed", f"I may not write in #{channel.name}; let me first")
        door = context_of(interaction)
        wishes = {NewsKind.DEADLINE: deadline, NewsKind.RECORD: record}
        actor = await door.person(interaction.user)
        subject = f"channel {channel.id} of guild {channel.guild.id}"
        async with door.store.transaction() as tx:
            told = kinds_in_words(await set_notifications(tx, roles.room(channel.id), wishes))
            await tx.audit.record(actor.id, "notices", subject, told)
        await answer.say(f"{channel.mention} is told of: {told}.")


async def setup(tree: Tree) -> None:
    """Add this module's commands."""
    await _admin_settings(tree)
    await _admin_channels(tree)
    await _admin_notices(tree)
