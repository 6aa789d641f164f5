"""`/admin pause|resume|limit|unlimit|limits`: whether and how often submissions are taken."""

from datetime import timedelta
from typing import Any

import discord
from discord import app_commands

from bot.domain.ids import BoardId
from bot.domain.moderation import RateLimit, span
from bot.frontends.discord import options
from bot.frontends.discord.answers import answering
from bot.frontends.discord.door import door_of
from bot.frontends.discord.groups import Tree, group
from bot.frontends.discord.roles import ADMIN, admin_deed, require
from bot.frontends.discord.viewers import viewer_of
from bot.reports.blocks import Column, Report, Table
from bot.services import moderate
from bot.services.lookup import find_board
from runners.contract.task import Mode

_Reason = app_commands.Range[str, 1, 300]


async def setup(tree: Tree) -> None:
    """Add the commands."""
    parent = group(tree, "admin")
    parent.add_command(pause)
    parent.add_command(resume)
    parent.add_command(limit)
    parent.add_command(unlimit)
    parent.add_command(limits)


@app_commands.command(description="Take no more submissions; what is stored is judged on")
@app_commands.describe(reason="Shown to everyone who submits")
async def pause(interaction: discord.Interaction[Any], reason: _Reason) -> None:
    """Until `/admin resume`, restarts included."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        await moderate.pause(door.store, deed)
        await answer.say("Submissions are paused.")


@app_commands.command(description="Take submissions again")
@app_commands.describe(reason="Kept in the audit")
async def resume(interaction: discord.Interaction[Any], reason: str = "") -> None:
    """Ends the pause."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        await moderate.resume(door.store, deed)
        await answer.say("Submissions are taken again.")


@app_commands.command(description="Limit everyone's submissions; without a board, on all of them")
@app_commands.describe(
    most="How many are taken", minutes="In how many minutes", mode="One mode; all of them without"
)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def limit(
    interaction: discord.Interaction[Any],
    *,
    most: app_commands.Range[int, 1, 100_000],
    minutes: app_commands.Range[int, 1, 525_600],
    leaderboard_name: str | None = None,
    mode: Mode | None = None,
) -> None:
    """Replaces the limit of the same board and mode."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, f"{most} in {minutes} min")
        door = door_of(interaction)
        board = await _board(interaction, leaderboard_name)
        wanted = RateLimit(most, timedelta(minutes=minutes), board, mode)
        await moderate.set_limit(door.store, deed, wanted)
        await answer.say(f"At most {most} in {span(wanted.window)} are taken from one person.")


@app_commands.command(description="End a limit")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def unlimit(
    interaction: discord.Interaction[Any],
    leaderboard_name: str | None = None,
    mode: Mode | None = None,
) -> None:
    """The limit of just this board and mode."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, "")
        door = door_of(interaction)
        board = await _board(interaction, leaderboard_name)
        await moderate.drop_limit(door.store, deed, board, mode)
        await answer.say("The limit is gone.")


@app_commands.command(description="The limits that hold")
async def limits(interaction: discord.Interaction[Any]) -> None:
    """A line each, the wider ones first."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        found = await door.store.moderation.limits()
        if not found:
            await answer.say("There is no limit.")
            return
        names = {board.id: board.name for board in await door.store.boards.all()}
        rows = tuple(
            (
                names[each.board] if each.board else "every board",
                each.mode or "every mode",
                str(each.most),
                span(each.window),
            )
            for each in found
        )
        columns = (Column("board"), Column("mode"), Column("most", numeric=True), Column("in"))
        await answer.show(Report("Limits", (Table("per person", columns, rows),)))


async def _board(interaction: discord.Interaction[Any], name: str | None) -> BoardId | None:
    if name is None:
        return None
    viewer = await viewer_of(interaction)
    return (await find_board(door_of(interaction).store, viewer, name)).id
