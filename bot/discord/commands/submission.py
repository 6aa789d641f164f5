"""`/submission show|source|cancel`: one submission by its number."""

import asyncio
from typing import Any

import discord
from discord import app_commands

from bot.discord import deeds, options
from bot.discord.buttons import buttons_of
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.viewers import viewer_of
from bot.domain.ids import SubmissionId
from bot.reports.status import status_report
from bot.services.lookup import own_submission
from bot.services.profiles import profile_files
from bot.services.status import status

_LARGEST = 2**53
"""What Discord can say as a number."""


async def setup(tree: Tree) -> None:
    """Add the commands."""
    parent = group(tree, "submission")
    parent.add_command(show)
    parent.add_command(show_source)
    parent.add_command(stop)


@app_commands.command(name="show", description="The report of one of your submissions")
@app_commands.describe(number="Its number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def show(
    interaction: discord.Interaction[Any], number: app_commands.Range[int, 1, _LARGEST]
) -> None:
    """The report as it stands now, whoever asks again gets the newer one."""
    async with answering(interaction) as answer:
        door = door_of(interaction)
        own = await own_submission(door.store, await viewer_of(interaction), SubmissionId(number))
        found = await status(door.store, own.id)
        files = await profile_files(door.store, found.submission)
        report = await asyncio.to_thread(status_report, found, files)
        await answer.show(report, buttons_of(found))


@app_commands.command(name="source", description="The file of a submission, where you may see it")
@app_commands.describe(number="Its number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def show_source(
    interaction: discord.Interaction[Any], number: app_commands.Range[int, 1, _LARGEST]
) -> None:
    """The file."""
    async with answering(interaction) as answer:
        await deeds.show_source(answer, SubmissionId(number))


@app_commands.command(name="cancel", description="Stop one of your submissions")
@app_commands.describe(number="Its number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def stop(
    interaction: discord.Interaction[Any], number: app_commands.Range[int, 1, _LARGEST]
) -> None:
    """What is queued ends at once, what runs within seconds."""
    async with answering(interaction) as answer:
        await deeds.stop(answer, SubmissionId(number))
