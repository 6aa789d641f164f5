"""`/leaderboard task` and `/leaderboard template`: what to solve, and a file to begin with."""

from typing import Any

import discord
from discord import app_commands

from bot.domain.board import Board
from bot.domain.errors import UserError, unknown_name
from bot.frontends.discord import options
from bot.frontends.discord.answers import answering
from bot.frontends.discord.door import Door, door_of
from bot.frontends.discord.groups import Tree, group
from bot.reports.blocks import Attachment, Block, Report, Text
from bot.services.lookup import find_board
from runners.contract.task import TaskDefinition


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "leaderboard")
    parent.add_command(task)
    parent.add_command(template)


@app_commands.command(description="What a board asks for, with every file of its task")
@app_commands.describe(leaderboard_name="The board")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def task(interaction: discord.Interaction[Any], leaderboard_name: str) -> None:
    """The description, then the files."""
    async with answering(interaction) as answer:
        board, definition = await _task(door_of(interaction), leaderboard_name)
        files = [Attachment(name, text.encode()) for name, text in definition.files.items()]
        cases = f"{len(definition.tests)} tests, {len(definition.benchmarks)} benchmarks"
        blocks: list[Block] = [Text(definition.description), Text(cases), *files]
        await answer.show(Report(f"Task of {board.name}", tuple(blocks)))


@app_commands.command(description="A file to begin with, with the heading in place")
@app_commands.describe(leaderboard_name="The board", lang="One of the task's templates")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def template(
    interaction: discord.Interaction[Any], leaderboard_name: str, lang: str | None = None
) -> None:
    """The template whose language is meant; the only one needs no name."""
    async with answering(interaction) as answer:
        board, definition = await _task(door_of(interaction), leaderboard_name)
        name = _language(definition, lang)
        file_name = definition.templates[name]
        heading = f"#!PODIUM leaderboard {board.name}\n"
        if not file_name.endswith(".py"):
            heading = f"//{heading[1:]}"
        text = heading + definition.files[file_name]
        suffix = file_name.rpartition(".")[2]
        file = Attachment(f"{board.name}.{suffix}", text.encode())
        await answer.show(Report(f"Template of {board.name} ({name})", (file,)))


@template.autocomplete("lang")
async def _languages(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[str]]:
    board = getattr(interaction.namespace, "leaderboard_name", None)
    try:
        _, definition = await _task(door_of(interaction), str(board))
    except UserError:
        return []
    fitting = [name for name in definition.templates if current.casefold() in name.casefold()]
    return options.choices(fitting)


def _language(definition: TaskDefinition, lang: str | None) -> str:
    names = list(definition.templates)
    if not names:
        raise UserError("no-template", "this task ships no template; /leaderboard task shows it")
    if lang is None:
        return names[0]
    if lang not in names:
        raise unknown_name("template", lang, names)
    return lang


async def _task(door: Door, name: str) -> tuple[Board, TaskDefinition]:
    board = await find_board(door.store, name)
    version = await door.store.boards.version(board.task_version)
    if version is None:
        raise LookupError(f"board {board.name} has no task version {board.task_version}")
    return board, version.definition
