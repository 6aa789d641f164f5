"""Receives a task zip: reads it, shows its contents or changes, asks, and stores the request."""

import asyncio
from dataclasses import replace
from pathlib import PurePath

import discord

from bot.discord.context import DOOR, DiscordContext, context_of
from bot.discord.menus import GpuMenus, Question
from bot.discord.notifications import season
from bot.discord.publication_thread.state import PublicationThread
from bot.discord.responses import InteractionReply
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.publication import NewRelease, PublishChange, PublishRequest
from bot.reports.blocks import Report, Text, Tone
from bot.reports.tasks import change_report, found_report
from bot.services.publishing.publish import (
    NO_BOARD,
    REQUEST,
    TaskUpload,
    named_gpus,
    no_gpu,
    possible_gpus,
    publish,
    read_upload,
    validate_publish,
)
from runners.contract.task import TaskDefinition

ZIP_BYTES = 10 << 20
AGREED = "Check and publish"


async def upload_of(
    attachment: discord.Attachment, request: PublishRequest, answer: InteractionReply
) -> TaskUpload:
    """Return the task of a zip after showing it; UserError with file and line if invalid."""
    if attachment.size > ZIP_BYTES:
        raise UserError(
            "too-large", f"the zip has {attachment.size:,} bytes; at most {ZIP_BYTES:,} are allowed"
        )
    data = await attachment.read()
    request = replace(request, zip_name=PurePath(attachment.filename).stem)
    bundle, parsed = await read_upload(data, request)
    await answer.show(await asyncio.to_thread(found_report, bundle, parsed))
    return TaskUpload(request, data, parsed.task)


async def create(upload: TaskUpload, answer: InteractionReply) -> None:
    """Submit a new board for the named GPU types, or ask for them first."""
    door = context_of(answer.interaction)
    upload = replace(upload, request=replace(upload.request, onto=NO_BOARD))
    if upload.request.gpus:
        await hand_in(upload, answer)
        return
    gpus = await possible_gpus(door.store, door.runners, upload.task)
    if not gpus:
        raise no_gpu(upload.task)
    request = upload.for_gpus(gpus).request
    await validate_publish(door.store, door.clock, request, upload.task)

    async def go_on(answer: InteractionReply, chosen: tuple[str, ...]) -> None:
        await hand_in(upload.for_gpus(chosen), answer)

    menus = GpuMenus(gpus, go_on, label=AGREED)
    await answer.say(menus.asking("Choose the board's GPU types:"), menus)


async def update(upload: TaskUpload, board: Board, answer: InteractionReply) -> None:
    """Show what the next version changes; submit it when the person agrees."""
    door = context_of(answer.interaction)
    upload = replace(upload, request=replace(upload.request, onto=board.task_version))
    await validate_publish(door.store, door.clock, upload.request, upload.task)
    report = await asyncio.to_thread(_change, board, await _present(door, board), upload)
    await answer.show(report)
    if len(report.blocks) == 1 and isinstance(report.blocks[0], Text):
        await reconfigure(board, upload.request, answer)  # who may see it can still differ
        return

    async def go_on(answer: InteractionReply, chosen: tuple[str, ...]) -> None:
        del chosen
        await hand_in(upload, answer)

    words = (
        "New submissions are judged by the new version. Existing scores stay with the old version."
    )
    await answer.say(f"{words} Nothing is changed yet.", Question(go_on, AGREED))


def _change(board: Board, before: TaskDefinition, upload: TaskUpload) -> Report:
    request, task = upload.request, upload.task
    deadline = None if request.endless else request.deadline or board.deadline
    gpus = named_gpus(request, task, board)
    return change_report(board, before, task, gpus=gpus, deadline=deadline)


async def _present(door: DiscordContext, board: Board) -> TaskDefinition:
    version = await door.store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    return version.definition


async def hand_in(upload: TaskUpload, answer: InteractionReply) -> None:
    """Store what is to be checked; after that a restart does not lose it."""
    door, request = context_of(answer.interaction), upload.request
    await validate_publish(door.store, door.clock, request, upload.task)
    place = PublicationThread.here(answer.interaction).model_dump_json()
    stored = REQUEST.dump_json(request).decode()
    await door.store.releases.add(NewRelease(DOOR, request.person, upload.zip, stored, place))
    await answer.say(
        "Checking your task: I'm running its solutions now. The board is published only if "
        "every solution gets its expected verdict. Follow the progress in your private "
        "thread, or in your direct messages if I can't create one."
    )


async def reconfigure(board: Board, request: PublishRequest, answer: InteractionReply) -> None:
    """Change only a board's deadline, GPU types or access."""
    door = context_of(answer.interaction)
    task = await _present(door, board)
    published = await publish(door.store, door.clock, replace(request, onto=None), task)
    board = published.board
    changed = published.change is not PublishChange.UNCHANGED
    words = "changed" if changed else "nothing to change"
    text = Text(f"{board.name} on {', '.join(board.gpus)}: {words}", Tone.GOOD)
    await answer.show(Report(f"Leaderboard {board.name}", (text,)))
    await answer.say(season(board.deadline))
