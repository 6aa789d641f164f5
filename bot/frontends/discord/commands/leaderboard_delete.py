"""`/leaderboard delete`: a board with everything of it, after its exact name was typed."""

from collections.abc import Sequence
from typing import Any

import discord
from discord import app_commands
from typing_extensions import override

from bot.domain.errors import UserError
from bot.frontends.discord import options
from bot.frontends.discord.answers import answering, straight
from bot.frontends.discord.door import door_of
from bot.frontends.discord.draw import FILE_BYTES
from bot.frontends.discord.groups import Tree, group
from bot.frontends.discord.menus import MENU_S
from bot.frontends.discord.viewers import viewer_of
from bot.reports.blocks import Attachment, Block, Report, Text
from bot.services.delete_board import Deletion, delete_board
from bot.services.lookup import own_board, visible_boards


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(delete)


@app_commands.command(description="Delete a board and everything that was submitted to it")
@app_commands.describe(leaderboard_name="The board; you are asked for it without")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def delete(
    interaction: discord.Interaction[Any], leaderboard_name: str | None = None
) -> None:
    """Asks for the exact name before anything happens."""
    async with straight(interaction):
        if leaderboard_name is None:
            await _ask_which(interaction)
        else:
            await _confirm(interaction, leaderboard_name)


async def _confirm(interaction: discord.Interaction[Any], name: str) -> None:
    viewer = await viewer_of(interaction)
    board = await own_board(door_of(interaction).store, viewer, name)
    await interaction.response.send_modal(Confirmation(board.name))


async def _ask_which(interaction: discord.Interaction[Any]) -> None:
    viewer = await viewer_of(interaction)
    boards = await visible_boards(door_of(interaction).store, viewer)
    names = [each.name for each in boards if each.belongs_to(viewer)]
    if not names:
        raise UserError("no-board", "there is no board that you may delete")
    words = "Which board?"
    if len(names) > options.MOST_CHOICES:
        words += f" ({len(names) - options.MOST_CHOICES} more can be named in the command)"
    view = discord.ui.View(timeout=MENU_S)
    view.add_item(_Which(names[: options.MOST_CHOICES]))
    await interaction.response.send_message(words, view=view, ephemeral=True)


class _Which(discord.ui.Select[Any]):
    """The boards that a person may delete."""

    def __init__(self, names: Sequence[str]) -> None:
        found = [discord.SelectOption(label=name[:100], value=name) for name in names]
        super().__init__(placeholder="A board", options=found)

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with straight(interaction):
            await _confirm(interaction, self.values[0])


class Confirmation(discord.ui.Modal, title="Delete a leaderboard"):
    """The name once more, as it is written."""

    typed: discord.ui.TextInput[Any] = discord.ui.TextInput(label="The board's exact name")
    reason: discord.ui.TextInput[Any] = discord.ui.TextInput(
        label="Why", required=False, max_length=300
    )

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @override
    async def on_submit(self, interaction: discord.Interaction[Any]) -> None:
        async with answering(interaction) as answer:
            viewer = await viewer_of(interaction)
            deletion = Deletion(self.name, self.typed.value, self.reason.value)
            kept = await delete_board(door_of(interaction).store, viewer, deletion)
            await answer.show(Report(f"Leaderboard {self.name}", _handed_out(self.name, kept)))


def _handed_out(name: str, kept: bytes) -> tuple[Block, ...]:
    if len(kept) > FILE_BYTES:
        return (Text("It is gone; its sources were too many for a file of Discord."),)
    file = Attachment(f"{name}.zip", kept)
    return Text("It is gone; this zip has its task and every source."), file
