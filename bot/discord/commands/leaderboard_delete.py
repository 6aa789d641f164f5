"""`/leaderboard delete`: deletes a board and all its data, after its exact name was typed."""

from collections.abc import Sequence
from typing import Any

import discord
from discord import app_commands
from typing_extensions import override

from bot.discord import options
from bot.discord.context import Tree, add_commands, context_of
from bot.discord.draw import FILE_BYTES, MessageDraft
from bot.discord.escaping import line
from bot.discord.options import MENU_S
from bot.discord.responses import InteractionReply, as_files, replying, straight
from bot.discord.roles import viewer_of
from bot.domain.errors import UserError
from bot.reports.blocks import Attachment, Report, Text, Tone
from bot.services.boards import BoardArchive, Deletion, board_archive, delete_board
from bot.services.lookup import own_board, visible_boards


async def setup(tree: Tree) -> None:
    """Add the command."""
    add_commands(tree, "leaderboard", delete)


@app_commands.command(description="Delete a board and everything that was submitted to it")
@app_commands.describe(leaderboard_name="Board; leave empty to choose from a menu")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def delete(
    interaction: discord.Interaction[Any], leaderboard_name: str | None = None
) -> None:
    """Ask for the exact name before anything is deleted."""
    async with straight(interaction):
        if leaderboard_name is None:
            await _ask_which(interaction)
        else:
            await _confirm(interaction, leaderboard_name)


async def _confirm(interaction: discord.Interaction[Any], name: str) -> None:
    viewer = await viewer_of(interaction)
    board = await own_board(context_of(interaction).store, viewer, name)
    await interaction.response.send_modal(Confirmation(board.name))


async def _ask_which(interaction: discord.Interaction[Any]) -> None:
    viewer = await viewer_of(interaction)
    boards = await visible_boards(context_of(interaction).store, viewer)
    names = [each.name for each in boards if each.belongs_to(viewer)]
    if not names:
        raise UserError("no-board", "there is no board that you may delete")
    words = "Which board?"
    if len(names) > options.MOST_CHOICES:
        words += f" ({len(names) - options.MOST_CHOICES} more; name them in the command)"
    view = discord.ui.View(timeout=MENU_S)
    view.add_item(_Which(names[: options.MOST_CHOICES]))
    await interaction.response.send_message(words, view=view, ephemeral=True)


class _Which(discord.ui.Select[Any]):
    """A menu of the boards that a person may delete."""

    def __init__(self, names: Sequence[str]) -> None:
        found = [discord.SelectOption(label=name[:100], value=name) for name in names]
        super().__init__(placeholder="A board", options=found)

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        async with straight(interaction):
            await _confirm(interaction, self.values[0])


class Confirmation(discord.ui.Modal, title="Delete a leaderboard"):
    """A form that asks for the exact name again."""

    typed: discord.ui.TextInput[Any] = discord.ui.TextInput(label="The board's exact name")
    reason: discord.ui.TextInput[Any] = discord.ui.TextInput(
        label="Why", required=False, max_length=300
    )

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @override
    async def on_submit(self, interaction: discord.Interaction[Any]) -> None:
        async with replying(interaction) as answer:
            viewer = await viewer_of(interaction)
            deletion = Deletion(self.name, self.typed.value, self.reason.value)
            store = context_of(interaction).store
            kept = await board_archive(store, viewer, deletion, zip_bytes=FILE_BYTES)
            where = await _hand_out(answer, _sheets(self.name, kept))
            await delete_board(store, viewer, deletion, kept)
            gone = Text(
                f"The board is deleted. Its task and all sources are in {where}.", Tone.GOOD
            )
            await answer.show(Report(f"Leaderboard {self.name}", (gone,)))


def _sheets(name: str, kept: BoardArchive) -> list[MessageDraft]:
    """Return one message per zip: a message with all of them could be too large."""
    about = f"Leaderboard {line(name)}: its task and all sources"
    whole = len(kept.zips) == 1
    return [
        MessageDraft(
            about if whole else f"{about}, part {number} of {len(kept.zips)}",
            (Attachment(f"{name}.zip" if whole else f"{name}-{number}.zip", data),),
        )
        for number, data in enumerate(kept.zips, start=1)
    ]


async def _hand_out(answer: InteractionReply, found: Sequence[MessageDraft]) -> str:
    """Send the zips before anything is deleted; return words for where they are."""
    try:
        conversation = await answer.interaction.user.create_dm()
        for sheet in found:
            await conversation.send(sheet.content, files=as_files(sheet.files))
    except discord.Forbidden:
        await answer.show_all(found)
        return "the message above; save it now, because Discord deletes it later"
    return "our direct messages"
