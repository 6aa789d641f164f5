"""`/admin audit|stats|runners`: what was decided, what waits, who works."""

import asyncio
from typing import Any

import discord
from discord import app_commands

from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.pagination import Book, leaf
from bot.discord.responses import answering
from bot.discord.roles import ADMIN, require
from bot.reports.admin import stats_report
from bot.reports.audit import audit_report
from bot.reports.workers import workers_report
from bot.services.audit import whole_audit
from bot.services.stats import stats as count


async def setup(tree: Tree) -> None:
    """Add the commands."""
    parent = group(tree, "admin")
    parent.add_command(audit)
    parent.add_command(stats)
    parent.add_command(runners)


@app_commands.command(description="Who did what, when and why: the newest first, in pages")
@app_commands.describe(as_file="The whole record as a file instead")
async def audit(interaction: discord.Interaction[Any], *, as_file: bool = False) -> None:
    """The record, which nobody can change."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        if as_file:
            decisions = await whole_audit(door_of(interaction).store)
            await answer.show(await asyncio.to_thread(audit_report, decisions))
        else:
            await answer.say(*await leaf(interaction, Book.AUDIT))


@app_commands.command(description="People, submissions a day, verdicts, and the queue")
async def stats(interaction: discord.Interaction[Any]) -> None:
    """The counts as they are now."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        await answer.show(stats_report(await count(door.store, door.clock, door.prices)))


@app_commands.command(description="The workers that live, and what they offer")
async def runners(interaction: discord.Interaction[Any]) -> None:
    """One line for each."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        found = await door.store.workers.alive()
        await answer.show(workers_report(found, door.clock.now()))
