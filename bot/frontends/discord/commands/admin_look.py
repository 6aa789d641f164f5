"""`/admin audit|stats|runners`: what was decided, what waits, who works."""

from typing import Any

import discord
from discord import app_commands

from bot.domain.ids import PersonId
from bot.frontends.discord.answers import answering
from bot.frontends.discord.door import Door, door_of
from bot.frontends.discord.groups import Tree, group
from bot.frontends.discord.roles import ADMIN, require
from bot.reports.blocks import Column, Report, Table
from bot.reports.stats import stats_report
from bot.services.stats import stats as count


async def setup(tree: Tree) -> None:
    """Add the commands."""
    parent = group(tree, "admin")
    parent.add_command(audit)
    parent.add_command(stats)
    parent.add_command(runners)


@app_commands.command(description="Who did what, when and why")
@app_commands.describe(rows="How many of the newest")
async def audit(
    interaction: discord.Interaction[Any], rows: app_commands.Range[int, 1, 1000] = 20
) -> None:
    """The newest first; many rows come as a file."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        columns = (Column("when"), Column("who"), Column("what"), Column("of"), Column("why"))
        lines = tuple(
            [
                (
                    f"{row.at:%Y-%m-%d %H:%M}",
                    await _name(door, row.actor),
                    row.action,
                    row.subject,
                    row.reason,
                )
                for row in await door.store.audit.rows(rows)
            ]
        )
        await answer.show(Report("Audit", (Table("newest first", columns, lines),)))


async def _name(door: Door, person: PersonId | None) -> str:
    found = None if person is None else await door.store.people.get(person)
    return "Podium" if found is None else found.name


@app_commands.command(description="People, submissions a day, verdicts, and the queue")
async def stats(interaction: discord.Interaction[Any]) -> None:
    """The counts as they are now."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        door = door_of(interaction)
        await answer.show(stats_report(await count(door.store, door.clock)))


@app_commands.command(description="The workers that live, and what they offer")
async def runners(interaction: discord.Interaction[Any]) -> None:
    """One line for each."""
    async with answering(interaction) as answer:
        require(interaction, ADMIN)
        found = await door_of(interaction).store.workers.alive()
        if not found:
            await answer.say("No worker lives: nothing is judged. Start `podium up` or a worker.")
            return
        columns = (Column("worker"), Column("GPU types"))
        lines = tuple(
            (worker.name, "asking" if worker.gpus is None else ", ".join(sorted(worker.gpus)))
            for worker in found
        )
        await answer.show(Report("Workers", (Table("living", columns, lines),)))
