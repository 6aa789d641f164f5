"""`/leaderboard list`: every board, open ones first."""

from typing import Any

import discord
from discord import app_commands

from bot.domain.board import Board
from bot.frontends.discord.answers import answering
from bot.frontends.discord.door import door_of
from bot.frontends.discord.draw import Sheet
from bot.frontends.discord.groups import Tree, group
from bot.frontends.discord.viewers import viewer_of
from bot.frontends.discord.words import line
from bot.services.lookup import visible_boards


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(list_boards)


@app_commands.command(name="list", description="Every board: open ones first, then ended ones")
async def list_boards(interaction: discord.Interaction[Any]) -> None:
    """One line for each board, as many messages as that takes."""
    async with answering(interaction) as answer:
        door = door_of(interaction)
        now = door.clock.now()
        found = await visible_boards(door.store, await viewer_of(interaction))
        boards = sorted(found, key=lambda each: (not each.is_open(now), each.name))
        if not boards:
            await answer.say("There is no board yet; `/leaderboard create` makes one.")
            return
        lines = [_line(board, is_open=board.is_open(now)) for board in boards]
        await answer.show_all(
            [Sheet("\n".join(lines[start : start + 12])) for start in range(0, len(lines), 12)]
        )


def _line(board: Board, *, is_open: bool) -> str:
    gpus = line(", ".join(board.gpus), 60)
    return f"{'🟢' if is_open else '⚪'} **{line(board.name)}** on {gpus}{_season(board)}"


def _season(board: Board) -> str:
    """The deadline in the reader's own time zone, as Discord shows it."""
    if board.deadline is None:
        return ", no deadline"
    at = int(board.deadline.timestamp())
    return f", until <t:{at}:F> (<t:{at}:R>)"
