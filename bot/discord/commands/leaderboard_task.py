"""`/leaderboard task` and `/leaderboard template`: the task, and a template."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import context_of
from bot.discord.options import Tree, group
from bot.discord.responses import replying
from bot.discord.roles import viewer_of
from bot.domain.errors import StoreError, UserError
from bot.reports.tasks import task_report, template_report
from bot.services.lookup import task_of


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "leaderboard")
    parent.add_command(task)
    parent.add_command(template)


@app_commands.command(description="Show the task of a board, with all its files")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def task(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """Show the description, then the files."""
    async with replying(interaction) as answer:
        store = context_of(interaction).store
        viewer = await viewer_of(interaction)
        await answer.show(task_report(*await task_of(store, viewer, leaderboard_name)))


@app_commands.command(description="Starter file for this task")
@app_commands.describe(leaderboard_name="The board", lang="Language of the template")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def template(
    interaction: discord.Interaction[Any], leaderboard_name: str, lang: str | None = None
) -> None:
    """Send the template of the language; an only template needs no name."""
    async with replying(interaction) as answer:
        store, viewer = context_of(interaction).store, await viewer_of(interaction)
        board, definition = await task_of(store, viewer, leaderboard_name)
        await answer.show(template_report(board, definition, lang))


@template.autocomplete("lang")
async def _languages(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[str]]:
    board = getattr(interaction.namespace, "leaderboard_name", None)
    try:
        viewer = await viewer_of(interaction)
        _, definition = await task_of(context_of(interaction).store, viewer, str(board))
    except (UserError, StoreError):
        return []
    fitting = [name for name in definition.templates if current.casefold() in name.casefold()]
    return options.choices(fitting)
