"""`/leaderboard show|show-personal|compare-gpus|list`: standings, own results, boards."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import context_of
from bot.discord.options import Tree, group
from bot.discord.pagination import MOST_AT_ONCE, PagedList, beside, first_page, leaf
from bot.discord.responses import replying
from bot.discord.roles import viewer_of
from bot.domain.errors import UserError
from bot.reports.charts import scaling_report
from bot.reports.history import personal_report
from bot.services.history import personal_board
from bot.services.standings import scaling, season


async def _leaderboard_show(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show)


@app_commands.command(description="Show the standings of a board, with a plot of its best times")
@app_commands.describe(
    leaderboard_name="The board",
    gpu="GPU types, separated by commas; others can be chosen from a menu",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def show(
    interaction: discord.Interaction[Any], leaderboard_name: str, gpu: str | None = None
) -> None:
    """Show the first page; buttons lead to other pages, a menu to other GPU types.

    With several GPU types, show the best ranks of each.
    """
    async with replying(interaction) as answer:
        door = context_of(interaction)
        viewer = await viewer_of(interaction)
        parts = [each.strip() for each in (gpu or "").split(",")]
        names: list[str | None] = list(dict.fromkeys(each for each in parts if each))
        if len(names) > MOST_AT_ONCE:
            raise UserError(
                "usage", f"at most {MOST_AT_ONCE} GPU types can be shown at once; name fewer"
            )
        found = [
            await season(door.store, door.clock, viewer, leaderboard_name, gpu=each)
            for each in names or [None]
        ]
        await answer.show(*(first_page(found[0]) if len(found) == 1 else beside(found)))


async def _leaderboard_personal(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show_personal)


@app_commands.command(name="show-personal", description="Your results on a board")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def show_personal(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """Show places, the plot of your ranked times, and your submissions."""
    async with replying(interaction) as answer:
        viewer = await viewer_of(interaction)
        found = await personal_board(context_of(interaction).store, viewer, leaderboard_name)
        await answer.show(personal_report(found))


async def _leaderboard_gpus(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(compare_gpus)


@app_commands.command(
    name="compare-gpus", description="Everyone's best time on each GPU type of a board"
)
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def compare_gpus(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """Show a table, and a plot if there are several GPU types."""
    async with replying(interaction) as answer:
        viewer = await viewer_of(interaction)
        found = await scaling(context_of(interaction).store, viewer, leaderboard_name)
        await answer.show(scaling_report(found))


async def _leaderboard_list(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(list_boards)


@app_commands.command(name="list", description="List all boards: open ones first, then closed ones")
async def list_boards(interaction: discord.Interaction[Any]) -> None:
    """Show one line per board, in pages."""
    async with replying(interaction) as answer:
        await answer.say(*await leaf(interaction, PagedList.BOARDS))


async def setup(tree: Tree) -> None:
    """Add this module's commands."""
    await _leaderboard_show(tree)
    await _leaderboard_personal(tree)
    await _leaderboard_gpus(tree)
    await _leaderboard_list(tree)
