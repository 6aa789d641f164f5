"""`/admin submission look|cancel`, and "Moderate" in the menu of a message about a submission."""

import asyncio
import re
from dataclasses import replace

import discord
from discord import app_commands

from bot.discord import buttons, options, roles
from bot.discord.context import ADMIN_NEEDS, Interaction, Tree, add_commands, context_of
from bot.discord.interaction_claims import replying
from bot.discord.responses import InteractionReply
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.reports.blocks import Attachment, Text
from bot.reports.submission import status_report
from bot.services import moderation


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "admin submission", look, cancel)
    tree.add_command(app_commands.ContextMenu(name="Moderate", callback=moderate))


@app_commands.command(description="Show anyone's report and source; recorded in the audit log")
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def look(interaction: Interaction, number: options.Number) -> None:
    """Show everything that its owner sees, only to this admin."""
    async with replying(interaction) as answer:
        await _show(answer, SubmissionId(number))


@app_commands.command(description="Cancel anyone's submission")
@app_commands.describe(number="Submission number", reason="Reason, kept in the audit log")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.any_submissions)
async def cancel(
    interaction: Interaction, number: options.Number, reason: app_commands.Range[str, 0, 300] = ""
) -> None:
    """End queued jobs at once, running ones within seconds."""
    async with replying(interaction) as answer:
        await buttons.stop(answer, SubmissionId(number), reason)


@app_commands.default_permissions(ADMIN_NEEDS)
async def moderate(interaction: Interaction, message: discord.Message) -> None:
    """Show the submission that a message of the bot is about."""
    async with replying(interaction) as answer:
        roles.require(interaction, roles.ADMIN)
        number = _submission_of(message)
        if message.author.id != interaction.application_id or number is None:
            raise UserError(
                "no-submission", "this message is not about a submission; choose one of mine"
            )
        await _show(answer, number)


_NUMBER = re.compile(r"\bsubmission #(\d{1,18})\b", re.IGNORECASE)


def _submission_of(message: discord.Message) -> SubmissionId | None:
    """Return the submission whose buttons a message has, or which it names first."""
    for row in message.components:
        for item in getattr(row, "children", ()):
            found = buttons.submission_of(getattr(item, "custom_id", None) or "")
            if found is not None:
                return found
    named = _NUMBER.search(message.content)
    return None if named is None else SubmissionId(int(named[1]))


async def _show(answer: InteractionReply, number: SubmissionId) -> None:
    decision = await roles.admin_decision(answer.interaction, "")
    context = context_of(answer.interaction)
    seen = await moderation.look(context.store, context.clock, decision, number)
    report = await asyncio.to_thread(status_report, seen.status, machine=False)
    who = "" if seen.person is None else f"{seen.person.name} ({seen.person.identity})"
    source = Attachment(seen.source.file_name, seen.source.text.encode())
    blocks = (Text(f"Submitted by {who}"), *report.blocks, source)
    view = None if seen.status.is_final else buttons.stop_button(number)
    await answer.show(replace(report, blocks=blocks), view)
