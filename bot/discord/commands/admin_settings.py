"""`/admin limit|unlimit|limits`: how often submissions are taken."""

from datetime import timedelta
from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.roles import ADMIN, admin_deed, require
from bot.discord.viewers import viewer_of
from bot.domain.ids import BoardId
from bot.domain.moderation import RateLimit, span
from bot.reports.house_rules import house_rules_report
from bot.services import moderation
from bot.services.house_rules import house_rules
from bot.services.lookup import find_board
from runners.contract.task import Mode

_Reason = app_commands.Range[str, 0, 300]


async def setup(tree: Tree) -> None:
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
    """Replaces the limit of the same board and mode."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
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
    """The limit of just this board and mode."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        board = await _board(interaction, leaderboard_name)
        await moderation.drop_limit(door.store, deed, board, mode)
        await answer.say("The limit is gone.")


@app_commands.command(description="What keeps submissions out: limits, pauses, bans")
async def limits(interaction: discord.Interaction[Any]) -> None:
    """A table of each."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        await answer.show(house_rules_report(await house_rules(door_of(interaction).store)))


async def _board(interaction: discord.Interaction[Any], name: str | None) -> BoardId | None:
    if name is None:
        return None
    viewer = await viewer_of(interaction)
    return (await find_board(door_of(interaction).store, viewer, name)).id
