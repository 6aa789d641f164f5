"""`/admin audit|stats|costs|runners|export`: what admins read; `/admin competition ...`."""

import asyncio
from collections.abc import Mapping
from typing import Literal

from discord import app_commands

from bot.discord import options, roles
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.escaping import line, with_times
from bot.discord.interaction_claims import replying
from bot.discord.pagination import PagedList, list_page
from bot.domain.times import parse_deadline
from bot.reports.admin import audit_report, stats_report, workers_report
from bot.reports.competition import competition_report, competitions_report, dates_line
from bot.reports.costs import LONGEST_NAME, costs_report
from bot.reports.export import export_report
from bot.services import boards, competitions, operations
from bot.services.audit import whole_audit


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "admin", audit, stats, costs, runners, export)
    group = "admin competition"
    add_commands(tree, group, competition_show, competition_close, competition_extend)


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
        await answer.show(stats_report(await operations.stats(context.store, context.clock)))


_Days = Literal["today", "7 days", "30 days"]
_DAYS: Mapping[_Days, int] = {"today": 1, "7 days": 7, "30 days": 30}


@app_commands.command(description="Who used how much GPU time, and what it cost")
@app_commands.describe(days="Days (UTC), with today (default: today)")
async def costs(interaction: Interaction, days: _Days = "today") -> None:
    """Show tables by person, board, GPU type and day, visible only to this admin."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context = context_of(interaction)
        found = await operations.costs(context.store, context.clock, _DAYS[days])
        await answer.show(costs_report(found, LONGEST_NAME))


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


_Name = app_commands.Range[str, 1, 100]


@app_commands.command(
    name="show", description="A competition's boards and overall ranking, or all competitions"
)
@app_commands.describe(name="The competition's name; leave empty for the list")
@app_commands.autocomplete(name=options.competitions)
async def competition_show(interaction: Interaction, name: _Name | None = None) -> None:
    """Show the named competition, or the list of competitions."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context, viewer = context_of(interaction), await roles.viewer_of(interaction)
        store, clock = context.store, context.clock
        if name is None:
            found = await competitions.visible_competitions(store, clock, viewer)
            await answer.show(competitions_report(found, clock.now()))
            return
        standings = await competitions.competition_standings(store, clock, viewer, name)
        await answer.show(competition_report(standings, clock.now()))


@app_commands.command(name="close", description="Close every open board of a competition now")
@app_commands.describe(name="The competition's name")
@app_commands.autocomplete(name=options.competitions)
async def competition_close(interaction: Interaction, name: _Name) -> None:
    """Close its open boards, before their deadlines."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context, viewer = context_of(interaction), await roles.viewer_of(interaction)
        closed = await competitions.close_competition(context.store, context.clock, viewer, name)
        await answer.conclude(f"Competition {line(closed.name)} is closed.")


@app_commands.command(
    name="extend", description="Extend a competition: boards that close before this date close then"
)
@app_commands.describe(
    name="The competition's name", deadline="YYYY-MM-DD[ HH:MM][ zone], default zone UTC"
)
@app_commands.autocomplete(name=options.competitions)
async def competition_extend(interaction: Interaction, name: _Name, deadline: str) -> None:
    """Move the deadlines that are earlier."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        context, viewer = context_of(interaction), await roles.viewer_of(interaction)
        extended = await competitions.extend_competition(
            context.store, context.clock, viewer, name, until=parse_deadline(deadline)
        )
        now = context.clock.now()
        await answer.conclude(
            f"Competition {line(extended.name)}: {with_times(dates_line(extended, now))}."
        )
