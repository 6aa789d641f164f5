"""`/admin audit|stats|runners|export`: what admins read."""

import asyncio

from discord import app_commands

from bot.discord import options, roles
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.pagination import PagedList, list_page
from bot.discord.responses import replying
from bot.reports.admin import audit_report, stats_report, workers_report
from bot.reports.export import export_report
from bot.services import boards, operations
from bot.services.audit import whole_audit


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "admin", audit, stats, runners, export)


@app_commands.command(description="Audit log of decisions, newest first")
@app_commands.describe(as_file="Send the whole audit log as a file")
async def audit(interaction: Interaction, *, as_file: bool = False) -> None:
    """Show the audit log, which cannot be changed."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        if as_file:
            decisions = await whole_audit(context_of(interaction).store)
            await answer.show(await asyncio.to_thread(audit_report, decisions))
        else:
            await answer.say(*await list_page(interaction, PagedList.AUDIT))


@app_commands.command(description="Statistics: people, submissions per day, verdicts and the queue")
async def stats(interaction: Interaction) -> None:
    """Show the current counts."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context = context_of(interaction)
        await answer.show(
            stats_report(await operations.stats(context.store, context.clock, context.prices))
        )


@app_commands.command(description="Connected workers and their GPUs")
async def runners(interaction: Interaction) -> None:
    """Show one line for each runner."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context = context_of(interaction)
        found = await context.store.workers.alive()
        await answer.show(workers_report(found, context.clock.now()))


@app_commands.command(description="Export all submissions and results of a board as CSV and JSON")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def export(interaction: Interaction, leaderboard_name: str) -> None:
    """Send three files, visible only to this admin."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        viewer = await roles.viewer_of(interaction)
        found = await boards.export_board(context_of(interaction).store, viewer, leaderboard_name)
        await answer.show(await asyncio.to_thread(export_report, found))
