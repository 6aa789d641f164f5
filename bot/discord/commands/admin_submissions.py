"""`/admin disqualify|requalify|rejudge`: what is ranked."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.roles import admin_deed
from bot.domain.ids import SubmissionId
from bot.services import moderation
from bot.services.rejudge import rejudge as judge_again

_Number = app_commands.Range[int, 1, 2**53]
_Reason = app_commands.Range[str, 1, 300]


async def setup(tree: Tree) -> None:
    """Add the commands."""
    parent = group(tree, "admin")
    parent.add_command(disqualify)
    parent.add_command(requalify)
    parent.add_command(rejudge)


@app_commands.command(description="Take a submission off its board; its result stays")
@app_commands.describe(number="Its number", reason="Shown to its owner")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def disqualify(
    interaction: discord.Interaction[Any], number: _Number, reason: _Reason
) -> None:
    """The owner's next best submission takes its place."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        await moderation.disqualify(door.store, deed, SubmissionId(number))
        await answer.say(f"Submission #{number} is not ranked any more.")


@app_commands.command(description="Rank a submission again that was taken off its board")
@app_commands.describe(number="Its number", reason="Kept in the audit")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def requalify(
    interaction: discord.Interaction[Any], number: _Number, reason: _Reason
) -> None:
    """Ends a disqualification or a withdrawal."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        await moderation.requalify(door.store, deed, SubmissionId(number))
        await answer.say(f"Submission #{number} is ranked again.")


@app_commands.command(description="Judge a submission once more, by its board's present task")
@app_commands.describe(number="Its number", reason="Kept in the audit")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def rejudge(interaction: discord.Interaction[Any], number: _Number, reason: _Reason) -> None:
    """A new submission of the same source, for the same person."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        door = door_of(interaction)
        again = await judge_again(door.store, deed, SubmissionId(number))
        await answer.say(f"Submission #{number} is judged again as #{again.id}.")
