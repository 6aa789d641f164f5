"""`/submission show|source|cancel|rerun|withdraw|compare`: one submission by its number."""

import asyncio
from typing import Any

import discord
from discord import app_commands

from bot.discord import buttons, options
from bot.discord.context import Tree, add_commands, context_of
from bot.discord.responses import replying
from bot.discord.roles import viewer_of
from bot.domain.ids import SubmissionId
from bot.domain.prices import with_costs
from bot.reports.comparison import comparison_report
from bot.reports.submission import status_report
from bot.services.comparison import compare as compare_submissions
from bot.services.lookup import own_submission
from bot.services.moderation import withdraw as take_off
from bot.services.sources import profile_files
from bot.services.status import submission_status
from runners.contract.task import Mode


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "submission", show, show_source, stop, rerun, withdraw, compare)


_Number = app_commands.Range[int, 1, 2**53]
"""A submission's number, up to the largest that Discord transmits exactly."""


@app_commands.command(name="show", description="Show the report of one of your submissions")
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def show(interaction: discord.Interaction[Any], number: _Number) -> None:
    """Show the current report; a later call shows a newer one."""
    async with replying(interaction) as answer:
        door = context_of(interaction)
        own = await own_submission(door.store, await viewer_of(interaction), SubmissionId(number))
        found = with_costs(await submission_status(door.store, own.id), door.prices)
        files = await profile_files(door.store, found.submission)
        report = await asyncio.to_thread(status_report, found, files)
        await answer.show(report, buttons.buttons_of(found))


@app_commands.command(
    name="source", description="Get the source of a submission, if you may see it"
)
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def show_source(interaction: discord.Interaction[Any], number: _Number) -> None:
    """Send the file."""
    async with replying(interaction) as answer:
        await buttons.show_source(answer, SubmissionId(number))


@app_commands.command(name="cancel", description="Cancel one of your submissions")
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def stop(interaction: discord.Interaction[Any], number: _Number) -> None:
    """Queued jobs end at once, running ones within seconds."""
    async with replying(interaction) as answer:
        await buttons.stop(answer, SubmissionId(number))


@app_commands.command(description="Submit the same source again, in the same or another mode")
@app_commands.describe(number="Submission number", mode="Mode (default: the original mode)")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def rerun(
    interaction: discord.Interaction[Any], number: _Number, mode: Mode | None = None
) -> None:
    """Create a new submission with its own number."""
    async with replying(interaction) as answer:
        await buttons.run_again(answer, SubmissionId(number), mode)


@app_commands.command(description="Permanently remove one of your submissions from its board")
@app_commands.describe(number="Submission number", reason="Reason, kept in the audit log")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def withdraw(
    interaction: discord.Interaction[Any],
    number: _Number,
    reason: app_commands.Range[str, 0, 300] = "",
) -> None:
    """The result stays; your next best submission is ranked instead."""
    async with replying(interaction) as answer:
        viewer = await viewer_of(interaction)
        await take_off(context_of(interaction).store, viewer, reason, SubmissionId(number))
        await answer.say(f"Submission #{number} is removed from its board.")


@app_commands.command(description="Compare two submissions: times and source")
@app_commands.describe(first="First submission", second="Second submission, to the same board")
@app_commands.autocomplete(first=options.own_submissions, second=options.own_submissions)
async def compare(interaction: discord.Interaction[Any], first: _Number, second: _Number) -> None:
    """You must be allowed to read both sources."""
    async with replying(interaction) as answer:
        door = context_of(interaction)
        found = await compare_submissions(
            door.store,
            door.clock,
            await viewer_of(interaction),
            first=SubmissionId(first),
            second=SubmissionId(second),
        )
        await answer.show(await asyncio.to_thread(comparison_report, found))
