"""`/leaderboard submit`, and "Submit this file" in the menu of a message."""

import re
from typing import Any

import discord
from discord import app_commands

from bot.discord import options, submitting
from bot.discord.interaction_claims import keeping
from bot.discord.options import Tree, group
from bot.domain.errors import UserError
from runners.contract.task import Mode

_DESCRIPTIONS = {
    Mode.TEST: "Check a kernel against the tests, without timing it",
    Mode.BENCHMARK: "Check and time a kernel, without ranking it",
    Mode.PROFILE: "Run a kernel once under the profiler",
    Mode.RANKED: "Check, time and rank a kernel",
}


async def _leaderboard_submit(tree: Tree) -> None:
    """Add one command for each mode."""
    parent = group(tree, "leaderboard submit")
    for mode, description in _DESCRIPTIONS.items():
        parent.add_command(_command(mode, description))


def _command(mode: Mode, description: str) -> app_commands.Command[Any, ..., Any]:
    @app_commands.command(name=mode.value, description=description)
    @app_commands.describe(
        script="Your kernel, one source file",
        leaderboard_name="Board; not needed if the file's header names it",
        gpus="GPU types, separated by commas; not needed if the board has only one",
    )
    @app_commands.autocomplete(leaderboard_name=options.boards, gpus=options.gpus)
    async def submit(
        interaction: discord.Interaction[Any],
        script: discord.Attachment,
        leaderboard_name: str | None = None,
        gpus: str | None = None,
    ) -> None:
        async with keeping(interaction) as answer:
            upload = submitting.SubmissionUpload(
                file_name=script.filename,
                content=await submitting.read(script),
                mode=mode,
                board=leaderboard_name,
                gpus=options.gpu_names(gpus),
            )
            await submitting.take_in(answer, upload)

    return submit


_BLOCK = re.compile(r"```(?:[A-Za-z+#]*\n)?(?P<text>.*?)```", re.DOTALL)


async def _submit_this_file(tree: Tree) -> None:
    """Add the menu entry."""
    tree.add_command(app_commands.ContextMenu(name="Submit this file", callback=submit_this_file))


async def submit_this_file(interaction: discord.Interaction[Any], message: discord.Message) -> None:
    """Submit as ranked; the file's header names the board."""
    async with keeping(interaction) as answer:
        if message.author.id != interaction.user.id:
            raise UserError("not-yours", "this message is from another person; submit your own")
        await submitting.take_in(answer, await _upload(message))


async def _upload(message: discord.Message) -> submitting.SubmissionUpload:
    if len(message.attachments) > 1:
        raise UserError("one-file", "the message has several files; send a message with one file")
    if message.attachments:
        script = message.attachments[0]
        content = await submitting.read(script)
        return submitting.SubmissionUpload(script.filename, content, Mode.RANKED)
    block = _BLOCK.search(message.content)
    if block is None:
        raise UserError("no-file", "the message has neither a file nor a code block")
    return submitting.SubmissionUpload("message.py", block["text"].encode(), Mode.RANKED)


async def setup(tree: Tree) -> None:
    """Add this module's commands."""
    await _leaderboard_submit(tree)
    await _submit_this_file(tree)
