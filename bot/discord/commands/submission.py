"""`/leaderboard submit`, "Submit this file" in the menu of a message, and `/submission ...`.

`/submission show|source|cancel|rerun|withdraw|compare` are about one submission by its number.
"""

import asyncio
import json
import re
from dataclasses import dataclass
from typing import Any

import discord
from discord import app_commands

from bot.discord import buttons, options, questions, roles
from bot.discord.channels import display_for, require_submission_channel
from bot.discord.context import (
    DiscordContext,
    Interaction,
    Tree,
    add_commands,
    context_of,
    interaction_key,
)
from bot.discord.interaction_claims import replying
from bot.discord.responses import InteractionReply
from bot.discord.submission_steps import full_report
from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import Question
from bot.domain.submission import Submission, SubmissionRequest
from bot.reports.comparison import comparison_report
from bot.services import comparison, lookup, moderation, submissions
from bot.services.status import submission_status
from runners.contract.task import Mode


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    tree.client.add_dynamic_items(questions.GpuSelect, questions.ContinueButton)
    questions.KINDS[_SUBMIT.action] = _SUBMIT
    add_commands(tree, "submission", show, show_source, cancel, rerun, withdraw, compare)
    modes = [_command(mode, description) for mode, description in _DESCRIPTIONS.items()]
    add_commands(tree, "leaderboard submit", *modes)
    tree.add_command(app_commands.ContextMenu(name="Submit this file", callback=submit_this_file))


@app_commands.command(name="show", description="Show the report of one of your submissions")
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def show(interaction: Interaction, number: options.Number) -> None:
    """Show the report as it is now."""
    async with replying(interaction) as answer:
        context = context_of(interaction)
        own = await lookup.own_submission(
            context.store, await roles.viewer_of(interaction), SubmissionId(number)
        )
        status = await submission_status(context.store, own.id)
        await answer.show(await full_report(context, status), buttons.buttons_of(status))


@app_commands.command(
    name="source", description="Get the source of a submission, if you may see it"
)
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def show_source(interaction: Interaction, number: options.Number) -> None:
    """Send the file."""
    async with replying(interaction) as answer:
        await buttons.show_source(answer, SubmissionId(number))


@app_commands.command(name="cancel", description="Cancel one of your submissions")
@app_commands.describe(number="Submission number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def cancel(interaction: Interaction, number: options.Number) -> None:
    """End queued jobs at once, running ones within seconds."""
    async with replying(interaction) as answer:
        await buttons.cancel(answer, SubmissionId(number))


@app_commands.command(description="Submit the same source again, in the same or another mode")
@app_commands.describe(number="Submission number", mode="Mode (default: the original mode)")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def rerun(interaction: Interaction, number: options.Number, mode: Mode | None = None) -> None:
    """Create a new submission with its own number."""
    async with replying(interaction) as answer:
        await buttons.run_again(answer, SubmissionId(number), mode)


@app_commands.command(description="Permanently remove one of your submissions from its board")
@app_commands.describe(number="Submission number", reason="Reason, shown with the result")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_submissions)
async def withdraw(
    interaction: Interaction, number: options.Number, reason: app_commands.Range[str, 0, 300] = ""
) -> None:
    """Rank the person's next best submission instead; the result stays."""
    async with replying(interaction) as answer:
        viewer = await roles.viewer_of(interaction)
        await moderation.withdraw(
            context_of(interaction).store, viewer, reason, SubmissionId(number)
        )
        await answer.conclude(f"Submission #{number} is removed from its board.")


@app_commands.command(description="Compare two submissions: times and source")
@app_commands.describe(first="First submission", second="Second submission, to the same board")
@app_commands.autocomplete(first=options.own_submissions, second=options.own_submissions)
async def compare(interaction: Interaction, first: options.Number, second: options.Number) -> None:
    """Show both, if the person may read both sources."""
    async with replying(interaction) as answer:
        context = context_of(interaction)
        compared = await comparison.compare(
            context.store,
            context.clock,
            await roles.viewer_of(interaction),
            first=SubmissionId(first),
            second=SubmissionId(second),
        )
        await answer.show(await asyncio.to_thread(comparison_report, compared))


_DESCRIPTIONS = {
    Mode.TEST: "Check a kernel against the tests, without timing it",
    Mode.BENCHMARK: "Check and time a kernel, without ranking it",
    Mode.PROFILE: "Run a kernel once under the profiler",
    Mode.RANKED: "Check, time and rank a kernel",
}


@dataclass(frozen=True, slots=True)
class SubmissionUpload:
    """A file to judge; without a board, its header names one."""

    file_name: str
    content: bytes
    mode: Mode
    board: str | None = None
    gpus: tuple[str, ...] = ()


def _command(mode: Mode, description: str) -> app_commands.Command[Any, ..., Any]:
    @app_commands.command(name=mode.value, description=description)
    @app_commands.describe(
        script="Your kernel, one source file",
        leaderboard_name="Board; not needed if the file's header names it",
        gpus="GPU types, separated by commas; not needed if the board has only one",
    )
    @app_commands.autocomplete(leaderboard_name=options.boards, gpus=options.gpus)
    async def submit(
        interaction: Interaction,
        script: discord.Attachment,
        leaderboard_name: str | None = None,
        gpus: str | None = None,
    ) -> None:
        async with replying(interaction) as answer:
            upload = SubmissionUpload(
                file_name=script.filename,
                content=await read(script),
                mode=mode,
                board=leaderboard_name,
                gpus=options.gpu_names(gpus),
            )
            await submit_upload(answer, upload)

    return submit


_BLOCK = re.compile(r"```(?:[A-Za-z+#]*\n)?(?P<text>.*?)```", re.DOTALL)
"""A code block in a message."""


async def submit_this_file(interaction: Interaction, message: discord.Message) -> None:
    """Submit as ranked; the file's header names the board."""
    async with replying(interaction) as answer:
        if message.author.id != interaction.user.id:
            raise UserError("not-yours", "this message is from another person; submit your own")
        await submit_upload(answer, await _upload(message))


async def _upload(message: discord.Message) -> SubmissionUpload:
    if len(message.attachments) > 1:
        raise UserError("one-file", "the message has several files; send a message with one file")
    if message.attachments:
        script = message.attachments[0]
        content = await read(script)
        return SubmissionUpload(script.filename, content, Mode.RANKED)
    block = _BLOCK.search(message.content)
    if block is None:
        raise UserError("no-file", "the message has neither a file nor a code block")
    return SubmissionUpload("message.py", block["text"].encode(), Mode.RANKED)


async def read(script: discord.Attachment) -> bytes:
    """Return the bytes of an attachment; UserError if it is too large, without fetching it."""
    if script.size > acceptance.MAX_SOURCE_BYTES:
        raise UserError(
            "too-large",
            f"the file has {script.size:,} bytes; at most "
            f"{acceptance.MAX_SOURCE_BYTES:,} are allowed",
        )
    try:
        return await script.read()
    except (discord.NotFound, discord.Forbidden) as error:
        raise UserError(
            "file-gone",
            "Discord no longer provides your file, so nothing was submitted; run the "
            "command again with the file",
        ) from error


async def submit_upload(answer: InteractionReply, upload: SubmissionUpload) -> None:
    """Store the submission and confirm it, or first ask which GPU types to use."""
    context = context_of(answer.interaction)
    await require_submission_channel(context, answer.interaction)
    try:
        stored = await _store(context, answer.interaction, upload)
    except UserError as error:
        if error.code != "choose-gpu" or upload.gpus:
            raise
        await _ask_for_gpus(context, answer, upload)
        return
    await buttons.say_stored(answer, stored)


async def _store(
    context: DiscordContext, interaction: Interaction, upload: SubmissionUpload
) -> Submission:
    request = SubmissionRequest(
        viewer=await roles.viewer_of(interaction),
        file_name=upload.file_name,
        content=upload.content,
        mode=upload.mode,
        board=upload.board,
        gpus=upload.gpus,
        display=display_for(interaction),
        key=interaction_key(interaction),
    )
    return await submissions.submit(context.store, context.clock, request)


async def _ask_for_gpus(
    context: DiscordContext, answer: InteractionReply, upload: SubmissionUpload
) -> None:
    header = acceptance.parse_header(acceptance.source_text(upload.content))
    name = acceptance.board_name(upload.board, header)
    board = await lookup.find_board(context.store, await roles.viewer_of(answer.interaction), name)
    request = json.dumps([upload.file_name, upload.mode, board.name])
    question = questions.new_question(answer.interaction, _SUBMIT, request, upload.content)
    await questions.ask(answer, "Choose the GPU types to run on:", question, board.gpus)


async def _submit_answered(answer: InteractionReply, question: Question) -> None:
    file_name, mode, board = json.loads(question.request)
    upload = SubmissionUpload(file_name, question.content, Mode(mode), board, question.chosen)
    await submit_upload(answer, upload)


_SUBMIT = questions.QuestionKind("submit", "Submit", _submit_answered)
