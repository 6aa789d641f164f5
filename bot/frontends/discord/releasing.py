"""Makes and changes boards through this door: the zip, the GPU types, the dry run, the news."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import PurePath

import discord

from bot.domain.access import Access
from bot.domain.archive import read_zip
from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.task_bundle import TaskBundle
from bot.domain.task_file import read_task
from bot.frontends.discord.answers import Answer
from bot.frontends.discord.buttons import board_buttons
from bot.frontends.discord.door import Door, door_of
from bot.frontends.discord.menus import GpuMenus
from bot.frontends.discord.viewers import of_room
from bot.frontends.discord.words import MOST, line, plain
from bot.reports.blocks import Block, Report, Text, Tone
from bot.services.publish import Change, PublishRequest, gpus_of, publish
from bot.services.release import Draft, Released, Releasing
from runners.contract.task import TaskDefinition

ZIP_BYTES = 10 << 20
_INTRODUCTION = 1200


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of a board, whatever its task is."""

    person: PersonId
    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    endless: bool = False
    as_admin: bool = False
    access: Access | None = None

    def request(self, task: TaskDefinition) -> PublishRequest:
        """The wish with its task."""
        return PublishRequest(
            person=self.person,
            task=task,
            name=self.name,
            gpus=self.gpus,
            deadline=self.deadline,
            endless=self.endless,
            as_admin=self.as_admin,
            access=self.access,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A wish with the task that was read for it."""

    bundle: TaskBundle
    request: PublishRequest


async def read_zip_of(attachment: discord.Attachment) -> TaskBundle:
    """The files of a task; UserError before anything too large is fetched."""
    if attachment.size > ZIP_BYTES:
        raise UserError(
            "too-large", f"the zip has {attachment.size:,} bytes; at most {ZIP_BYTES:,} are taken"
        )
    data = await attachment.read()
    return await asyncio.to_thread(read_zip, data, name=PurePath(attachment.filename).stem)


async def plan(bundle: TaskBundle, wish: Wish, answer: Answer) -> Plan:
    """The task of the bundle, shown as it was read."""
    parsed = await asyncio.to_thread(read_task, bundle)
    task = parsed.task
    found = (
        f"{len(task.tests)} tests, {len(task.benchmarks)} benchmarks, {len(task.files)} files, "
        f"ranked by {task.ranking_by}"
    )
    blocks: list[Block] = [Text(found)]
    blocks += [Text(warning, Tone.QUIET) for warning in parsed.warnings]
    await answer.show(Report(f"Task {task.name}", tuple(blocks)))
    return Plan(bundle, wish.request(task))


async def choose_gpus(plan: Plan, answer: Answer) -> None:
    """Release on the GPU types that are known, or ask for them."""
    door = door_of(answer.interaction)
    board = await door.store.boards.find(plan.request.board_name)
    if board is not None or plan.request.gpus:
        await release(plan, answer)
        return
    gpus = sorted(await _offered(door) | set(gpus_of(plan.request, None)))
    if not gpus:
        raise UserError("no-gpu", "no worker lives, and the task names no GPU types; start one")

    async def go_on(answer: Answer, chosen: tuple[str, ...]) -> None:
        await release(replace(plan, request=replace(plan.request, gpus=chosen)), answer)

    menus = GpuMenus(gpus, go_on, label="Check and publish")
    await answer.say("Choose the board's GPU types:", menus)


async def _offered(door: Door) -> set[str]:
    """The GPU types of the runners here, and of every worker that lives."""
    here = [await runner.capabilities() for runner in door.runners]
    alive = await door.store.workers.alive()
    return {gpu for offer in here for gpu in offer.gpus} | {
        gpu for worker in alive for gpu in worker.gpus or ()
    }


async def release(plan: Plan, answer: Answer) -> None:
    """Run the task's own solutions, publish, and tell the channel of a new board."""
    door = door_of(answer.interaction)
    telling: list[asyncio.Task[None]] = []

    def tell(words: str) -> None:
        telling.append(asyncio.create_task(answer.say(line(words))))

    releasing = Releasing(door.store, door.clock, door.runners, tell)
    try:
        (released,) = await releasing.release([Draft(plan.bundle, plan.request)])
    finally:
        await asyncio.gather(*telling, return_exceptions=True)
    await _show(door, released, answer)


async def reconfigure(board: Board, wish: Wish, answer: Answer) -> None:
    """Change a board's deadline, or who may see it, alone."""
    door = door_of(answer.interaction)
    version = await door.store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    published = await publish(door.store, door.clock, wish.request(version.definition))
    await _show(door, Released(published, ()), answer)


async def _show(door: Door, released: Released, answer: Answer) -> None:
    published = released.published
    board = published.board
    words = f"{board.name} on {', '.join(board.gpus)}: {published.change}"
    blocks: list[Block] = [Text(f"{words}, task version {published.version}", Tone.GOOD)]
    blocks += [
        Text(f"not run on {report.gpu}: {report.obstacle}", Tone.QUIET)
        for report in released.reports
        if not report.dry_run
    ]
    await answer.show(Report(f"Leaderboard {board.name}", tuple(blocks)))
    await answer.say(season(board.deadline))
    if published.change is Change.CREATED:
        await _announce(door, board, answer)
    elif published.change is Change.NEW_VERSION:
        question = "Judge everyone's best submission by the new version, too?"
        await answer.say(question, board_buttons(board, published.version, rejudge=True))


async def _announce(door: Door, board: Board, answer: Answer) -> None:
    """Tell the channel; where that is not allowed the board is made nevertheless."""
    channel = answer.interaction.channel
    client, room = answer.interaction.client, answer.interaction.channel_id or 0
    if not board.access.admits(of_room(client, room)):
        await answer.say("Not everyone here may see this board, so nobody was told of it.")
        return
    version = await door.store.boards.version(board.task_version)
    if version is None or not isinstance(channel, discord.abc.Messageable):
        return
    about = plain(version.definition.description.strip())
    if len(about) > _INTRODUCTION:
        about = f"{about[:_INTRODUCTION]}… (`/leaderboard task` has the rest)"
    head = f"**New leaderboard: {line(board.name)}** on {line(', '.join(board.gpus))}"
    text = f"{head}\n{season(board.deadline)}\n{about}"
    try:
        await channel.send(text[:MOST], view=board_buttons(board, 1, rejudge=False))
    except discord.Forbidden:
        await answer.say("I may not write in this channel, so nobody was told of the board.")


def season(deadline: datetime | None) -> str:
    """Until when a board is open, in the reader's own time zone."""
    if deadline is None:
        return "It has no deadline."
    at = int(deadline.timestamp())
    return f"It closes <t:{at}:F> (<t:{at}:R>)."
