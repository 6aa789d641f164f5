"""Takes a task zip in: reads it, shows what it holds or changes, asks, and stores the release."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import PurePath

import discord

from bot.domain.board import Board
from bot.domain.errors import UserError
from bot.domain.release import NewRelease
from bot.domain.requirements import has_device
from bot.frontends.discord.announcing import season
from bot.frontends.discord.answers import Answer
from bot.frontends.discord.door import DOOR, Door, door_of
from bot.frontends.discord.menus import GpuMenus, Question
from bot.frontends.discord.wishes import Stand
from bot.reports.blocks import Report, Text, Tone
from bot.reports.task_change import change_report
from bot.reports.task_found import found_report
from bot.services.offered import offered_gpus
from bot.services.publishing.publish import NO_BOARD, Change, PublishRequest, gpus_of, publish, vet
from bot.services.publishing.request import WISH, Wish, read
from runners.contract.gpus import gpu_types
from runners.contract.task import TaskDefinition

ZIP_BYTES = 10 << 20
AGREED = "Check and publish"


@dataclass(frozen=True, slots=True)
class Plan:
    """A wish with the zip that came for it, and the task that was read in it."""

    wish: Wish
    zip: bytes
    task: TaskDefinition

    @property
    def request(self) -> PublishRequest:
        """What is to be published."""
        return self.wish.request(self.task)


async def plan_for(attachment: discord.Attachment, wish: Wish, answer: Answer) -> Plan:
    """The task of a zip, shown as it was read; UserError with file and line when it is not one."""
    if attachment.size > ZIP_BYTES:
        raise UserError(
            "too-large", f"the zip has {attachment.size:,} bytes; at most {ZIP_BYTES:,} are taken"
        )
    data = await attachment.read()
    wish = replace(wish, zip_name=PurePath(attachment.filename).stem)
    bundle, parsed = await read(data, wish)
    await answer.show(await asyncio.to_thread(found_report, bundle, parsed))
    return Plan(wish, data, parsed.task)


async def create(plan: Plan, answer: Answer) -> None:
    """Hand in a new board for the GPU types that are named, or ask for them first."""
    door = door_of(answer.interaction)
    plan = replace(plan, wish=replace(plan.wish, onto=NO_BOARD))
    if plan.wish.gpus:
        await hand_in(plan, answer)
        return
    offered = await offered_gpus(door.store, door.runners) | set(gpu_types(plan.task.gpus))
    gpus = sorted(gpu for gpu in offered if has_device(plan.task, gpu))
    if not gpus:
        raise UserError(
            "no-gpu",
            f"no worker lives that has a GPU type for this task (device {plan.task.device}), and "
            "task.yml names none; start a worker, or name GPU types by the option gpus",
        )
    await vet(door.store, door.clock, replace(plan, wish=_on(plan.wish, gpus)).request)

    async def go_on(answer: Answer, chosen: tuple[str, ...]) -> None:
        await hand_in(replace(plan, wish=_on(plan.wish, chosen)), answer)

    menus = GpuMenus(gpus, go_on, label=AGREED)
    await answer.say(menus.asking("Choose the board's GPU types:"), menus)


def _on(wish: Wish, gpus: tuple[str, ...] | list[str]) -> Wish:
    return replace(wish, gpus=tuple(gpus))


async def update(plan: Plan, board: Board, answer: Answer) -> None:
    """Show what the next version changes; hand it in when the person agrees."""
    door = door_of(answer.interaction)
    plan = replace(plan, wish=replace(plan.wish, onto=board.task_version))
    await vet(door.store, door.clock, plan.request)
    report = await asyncio.to_thread(_change, board, await _present(door, board), plan)
    await answer.show(report)
    if len(report.blocks) == 1 and isinstance(report.blocks[0], Text):
        await reconfigure(board, plan.wish, answer)  # who may see it can differ nevertheless
        return

    async def go_on(answer: Answer, chosen: tuple[str, ...]) -> None:
        del chosen
        await hand_in(plan, answer)

    words = "New submissions are judged by the new version; old scores stay with theirs."
    await answer.say(f"{words} Nothing is changed yet.", Question(go_on, AGREED))


def _change(board: Board, before: TaskDefinition, plan: Plan) -> Report:
    wish = plan.wish
    deadline = None if wish.endless else wish.deadline or board.deadline
    gpus = gpus_of(plan.request, board)
    return change_report(board, before, plan.task, gpus=gpus, deadline=deadline)


async def _present(door: Door, board: Board) -> TaskDefinition:
    version = await door.store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    return version.definition


async def hand_in(plan: Plan, answer: Answer) -> None:
    """Store what is to be proven; from here on it survives this process and this interaction."""
    door = door_of(answer.interaction)
    await vet(door.store, door.clock, plan.request)
    stand = Stand.here(answer.interaction)
    wish = WISH.dump_json(plan.wish).decode()
    new = NewRelease(DOOR, plan.wish.person, plan.zip, wish, stand.model_dump_json())
    await door.store.releases.add(new)
    await answer.say(
        "The task's own solutions run now; nothing is published unless they end as they must. "
        "A private thread follows them live and has the outcome; where I can make none, I write "
        "to you directly."
    )


async def reconfigure(board: Board, wish: Wish, answer: Answer) -> None:
    """Change a board's deadline, its GPU types, or who may see it, alone."""
    door = door_of(answer.interaction)
    task = await _present(door, board)
    published = await publish(door.store, door.clock, replace(wish, onto=None).request(task))
    board = published.board
    changed = published.change is not Change.UNCHANGED
    words = "changed" if changed else "everything was so already"
    text = Text(f"{board.name} on {', '.join(board.gpus)}: {words}", Tone.GOOD)
    await answer.show(Report(f"Leaderboard {board.name}", (text,)))
    await answer.say(season(board.deadline))
