"""`/leaderboard create|update`: a board from a task zip, and its next version."""

from typing import Any

import discord
from discord import app_commands

from bot.domain.deadline import parse_deadline
from bot.domain.errors import UserError
from bot.frontends.discord import options, releasing
from bot.frontends.discord.answers import Answer, answering
from bot.frontends.discord.door import door_of
from bot.frontends.discord.groups import Tree, group
from bot.frontends.discord.roles import ADMIN, CREATOR, has_role, require
from bot.services.lookup import find_board


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "leaderboard")
    parent.add_command(create)
    parent.add_command(update)


@app_commands.command(description="Make a board from a task zip")
@app_commands.describe(
    leaderboard_name="The board's name",
    task_zip="A zip with task.yml and everything that it names",
    deadline="YYYY-MM-DD[ HH:MM][ zone], UTC without a zone; none without",
    gpus="GPU types, separated by commas; you are asked for them without",
)
@app_commands.autocomplete(gpus=options.gpus)
async def create(
    interaction: discord.Interaction[Any],
    *,
    leaderboard_name: app_commands.Range[str, 1, 64],
    task_zip: discord.Attachment,
    deadline: str | None = None,
    gpus: str | None = None,
) -> None:
    """Check the zip, run its solutions, publish, and tell the channel."""
    async with answering(interaction) as answer:
        require(interaction, CREATOR, ADMIN)
        door = door_of(interaction)
        if await door.store.boards.find(leaderboard_name) is not None:
            raise UserError("board-exists", f"there is a board {leaderboard_name!r}; update it")
        person = await door.person(interaction.user)
        wish = releasing.Wish(
            person.id,
            leaderboard_name,
            options.gpu_names(gpus),
            None if deadline is None else parse_deadline(deadline),
        )
        bundle = await releasing.read_zip_of(task_zip)
        await releasing.choose_gpus(await releasing.plan(bundle, wish, answer), answer)


@app_commands.command(description="Give a board another deadline, or its task's next version")
@app_commands.describe(
    leaderboard_name="The board",
    deadline="YYYY-MM-DD[ HH:MM][ zone], or 'none' to take it away",
    task_zip="A zip with the task's next version",
)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def update(
    interaction: discord.Interaction[Any],
    leaderboard_name: str,
    deadline: str | None = None,
    task_zip: discord.Attachment | None = None,
) -> None:
    """Old scores stay with their version."""
    async with answering(interaction) as answer:
        require(interaction, CREATOR, ADMIN)
        if deadline is None and task_zip is None:
            raise UserError("nothing", "name a deadline or a task zip, or both")
        await _update(answer, leaderboard_name, deadline, task_zip)


async def _update(
    answer: Answer, name: str, deadline: str | None, task_zip: discord.Attachment | None
) -> None:
    door = door_of(answer.interaction)
    board = await find_board(door.store, name)
    person = await door.person(answer.interaction.user)
    endless = deadline is not None and deadline.strip().lower() == "none"
    wish = releasing.Wish(
        person.id,
        board.name,
        (),
        None if deadline is None or endless else parse_deadline(deadline),
        endless=endless,
        as_admin=has_role(answer.interaction, ADMIN),
    )
    if task_zip is None:
        await releasing.reconfigure(board, wish, answer)
        return
    bundle = await releasing.read_zip_of(task_zip)
    await releasing.release(await releasing.plan(bundle, wish, answer), answer)
