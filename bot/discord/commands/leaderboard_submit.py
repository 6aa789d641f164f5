"""`/leaderboard submit`, and "Submit this file" in the menu of a message."""

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import discord
from discord import app_commands
from typing_extensions import override

from bot.discord import options
from bot.discord.buttons import stored_words
from bot.discord.channels import display_here, require_room
from bot.discord.context import DiscordContext, Tree, add_commands, context_of
from bot.discord.interaction_claims import answered_before, keeping, name_of
from bot.discord.options import GpuMenus, Then
from bot.discord.responses import InteractionReply
from bot.discord.roles import viewer_of
from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.heading import parse_heading
from bot.domain.submission import Submission, SubmissionRequest
from bot.services.lookup import find_board
from bot.services.submissions import submit
from runners.contract.task import Mode


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    modes = [_command(mode, description) for mode, description in _DESCRIPTIONS.items()]
    add_commands(tree, "leaderboard submit", *modes)
    tree.add_command(app_commands.ContextMenu(name="Submit this file", callback=submit_this_file))


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
        interaction: discord.Interaction[Any],
        script: discord.Attachment,
        leaderboard_name: str | None = None,
        gpus: str | None = None,
    ) -> None:
        async with keeping(interaction) as answer:
            upload = SubmissionUpload(
                file_name=script.filename,
                content=await read(script),
                mode=mode,
                board=leaderboard_name,
                gpus=options.gpu_names(gpus),
            )
            await take_in(answer, upload)

    return submit


_BLOCK = re.compile(r"```(?:[A-Za-z+#]*\n)?(?P<text>.*?)```", re.DOTALL)


async def submit_this_file(interaction: discord.Interaction[Any], message: discord.Message) -> None:
    """Submit as ranked; the file's header names the board."""
    async with keeping(interaction) as answer:
        if message.author.id != interaction.user.id:
            raise UserError("not-yours", "this message is from another person; submit your own")
        await take_in(answer, await _upload(message))


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
    """Return the bytes of an attachment; UserError before a file too large is fetched."""
    if script.size > acceptance.MAX_SOURCE_BYTES:
        raise UserError(
            "too-large",
            f"the file has {script.size:,} bytes; at most "
            f"{acceptance.MAX_SOURCE_BYTES:,} are taken",
        )
    try:
        return await script.read()
    except (discord.NotFound, discord.Forbidden) as error:
        raise UserError(
            "file-gone",
            "Discord no longer provides your file, so nothing was submitted; run the "
            "command again with the file",
        ) from error


async def take_in(answer: InteractionReply, upload: SubmissionUpload) -> None:
    """Store the submission and confirm it, or first ask which GPU types to use."""
    door = context_of(answer.interaction)
    await require_room(door, answer.interaction)
    gpus = upload.gpus or tuple(answered_before(answer.interaction).get("gpus", ()))
    upload = replace(upload, gpus=gpus)
    try:
        stored = await _store(door, answer.interaction, upload)
    except UserError as error:
        if error.code != "choose-gpu":
            raise
        await _ask_for_gpus(door, answer, upload)
        return
    await answer.say(stored_words(answer.interaction, stored))


async def _store(
    door: DiscordContext, interaction: discord.Interaction[Any], upload: SubmissionUpload
) -> Submission:
    request = SubmissionRequest(
        viewer=await viewer_of(interaction),
        file_name=upload.file_name,
        content=upload.content,
        mode=upload.mode,
        board=upload.board,
        gpus=upload.gpus,
        display=display_here(interaction),
        key=name_of(interaction),
    )
    return await submit(door.store, door.clock, request)


async def _ask_for_gpus(
    door: DiscordContext, answer: InteractionReply, upload: SubmissionUpload
) -> None:
    heading = parse_heading(acceptance.source_text(upload.content))
    name = acceptance.board_name(upload.board, heading)
    board = await find_board(door.store, await viewer_of(answer.interaction), name)

    async def go_on(answer: InteractionReply, chosen: tuple[str, ...]) -> None:
        await take_in(answer, replace(upload, gpus=chosen))

    menus = SubmitMenus(board.gpus, go_on, answer.interaction)
    await answer.say(menus.asking("Choose the GPU types to run on:"), menus)


class SubmitMenus(GpuMenus):
    """The GPU type menus of a submission; the click is stored with the original command."""

    def __init__(self, gpus: Sequence[str], then: Then, command: discord.Interaction[Any]) -> None:
        super().__init__(gpus, then)
        self.command = command

    @override
    def answering(
        self, interaction: discord.Interaction[Any]
    ) -> AbstractAsyncContextManager[InteractionReply]:
        return keeping(interaction, self.command, gpus=self.picked)
