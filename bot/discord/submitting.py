"""Submits a file from Discord, and performs the actions of a submission's buttons."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

import discord
from typing_extensions import override

from bot.discord.channels import display_here, require_room, takes_threads
from bot.discord.context import DiscordContext, context_of
from bot.discord.escaping import plain
from bot.discord.interaction_claims import answered_before, keeping, name_of
from bot.discord.menus import GpuMenus, Then
from bot.discord.responses import InteractionReply
from bot.discord.roles import viewer_of
from bot.domain import acceptance
from bot.domain.acceptance import parse_heading
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.submission import Submission, SubmissionRequest
from bot.reports.blocks import Attachment, Report
from bot.services import status, submissions
from bot.services.lookup import find_board
from bot.services.submissions import submit
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class SubmissionUpload:
    """A file to judge; without a board, its header names one."""

    file_name: str
    content: bytes
    mode: Mode
    board: str | None = None
    gpus: tuple[str, ...] = ()


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


def stored_words(interaction: discord.Interaction[Any], submission: Submission) -> str:
    """Return the first reply; the rest comes in the submission's own messages."""
    gpus = ", ".join(submission.gpus)
    stored = f"Submission #{submission.id} is stored: {submission.mode} on {plain(gpus)}."
    if interaction.guild_id is None:
        return f"{stored} This conversation shows its progress."
    if takes_threads(interaction.app_permissions):
        return f"{stored} A private thread shows its progress."
    return (
        f"{stored} I cannot open a private thread here, so your direct messages show its "
        f"progress. `/submission show id:{submission.id}` shows the report, too."
    )


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


async def stop(answer: InteractionReply, submission: SubmissionId) -> None:
    """Queued jobs end at once, running ones within seconds."""
    viewer = await viewer_of(answer.interaction)
    stopped = await submissions.cancel(context_of(answer.interaction).store, viewer, submission)
    if not stopped:
        raise UserError("finished", f"submission {submission} has already ended")
    await answer.say(f"Stopping submission #{submission}.")


async def run_again(
    answer: InteractionReply, submission: SubmissionId, mode: Mode | None = None
) -> None:
    """Submit the same source again, by default in its own mode."""
    door, viewer = context_of(answer.interaction), await viewer_of(answer.interaction)
    request = submissions.RerunRequest(viewer, submission, mode, display_here(answer.interaction))
    again = await submissions.rerun(door.store, door.clock, request)
    words = f"Submission #{submission} runs again as #{again.id}."
    await answer.say(f"{words} {stored_words(answer.interaction, again)}")


async def rank_again(answer: InteractionReply, submission: SubmissionId) -> None:
    """Submit the same source as ranked."""
    await run_again(answer, submission, Mode.RANKED)


async def show_source(answer: InteractionReply, submission: SubmissionId) -> None:
    """Send the file to people who may read it."""
    door, viewer = context_of(answer.interaction), await viewer_of(answer.interaction)
    found = await status.source(door.store, door.clock, viewer, submission)
    file = Attachment(found.file_name, found.text.encode())
    await answer.show(Report(f"Source of submission #{submission}", (file,)))
