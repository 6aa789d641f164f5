"""`/leaderboard invite|uninvite|join|delete` and `/admin competition delete`."""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Self, TypeAlias

import discord
from discord import app_commands
from typing_extensions import override

from bot.discord import options, roles
from bot.discord.context import NEEDED_ROLE, Interaction, Tree, add_commands, context_of
from bot.discord.draw import FILE_BYTES, MessageDraft
from bot.discord.escaping import MESSAGE_LIMIT, line
from bot.discord.interaction_claims import direct_response, replying
from bot.discord.responses import InteractionReply, as_files
from bot.domain.board import Board, Viewer, Visibility
from bot.domain.errors import UserError
from bot.ports import Store
from bot.reports.blocks import Attachment, Report, Text, Tone
from bot.services import boards, competitions, invites, lookup


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "leaderboard", invite, uninvite, join, delete)
    add_commands(tree, "admin competition", competition_delete)
    tree.client.add_dynamic_items(BoardMenu)


Guest: TypeAlias = discord.Member | discord.User | discord.Role

_GUESTS = {
    "who": "A person or a role",
    "who2": "Another person or role",
    "who3": "Another person or role",
    "who4": "Another person or role",
    "who5": "Another person or role",
}


@app_commands.command(
    description="Invite people and roles to a private board", extras={NEEDED_ROLE: roles.CREATOR}
)
@app_commands.describe(leaderboard_name="The board", **_GUESTS)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def invite(  # noqa: PLR0913  an argument for each option
    interaction: Interaction,
    *,
    leaderboard_name: str,
    who: Guest,
    who2: Guest | None = None,
    who3: Guest | None = None,
    who4: Guest | None = None,
    who5: Guest | None = None,
) -> None:
    """Add to the people who are already invited."""
    await _change(interaction, boards.invite, leaderboard_name, (who, who2, who3, who4, who5))


@app_commands.command(
    description="Remove people and roles from a private board", extras={NEEDED_ROLE: roles.CREATOR}
)
@app_commands.describe(leaderboard_name="The board", **_GUESTS)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def uninvite(  # noqa: PLR0913  an argument for each option
    interaction: Interaction,
    *,
    leaderboard_name: str,
    who: Guest,
    who2: Guest | None = None,
    who3: Guest | None = None,
    who4: Guest | None = None,
    who5: Guest | None = None,
) -> None:
    """Remove them from the people who are invited; their submissions stay."""
    await _change(interaction, boards.uninvite, leaderboard_name, (who, who2, who3, who4, who5))


async def _change(
    interaction: Interaction,
    change: Callable[[Store, Viewer, boards.Invitation], Awaitable[Board]],
    board: str,
    guests: Iterable[Guest | None],
) -> None:
    async with replying(interaction) as answer:
        viewer = await roles.viewer_of(interaction)
        invitation = boards.Invitation(board, _credentials(guests))
        await _show_invited(answer, await change(context_of(interaction).store, viewer, invitation))


def _credentials(guests: Iterable[Guest | None]) -> frozenset[str]:
    return frozenset(
        roles.role_credential(each.id)
        if isinstance(each, discord.Role)
        else roles.user_credential(each.id)
        for each in guests
        if each is not None
    )


async def _show_invited(answer: InteractionReply, board: Board) -> None:
    """Show who may see a private board; the mentions can be clicked but notify no one."""
    guests = [roles.mention(each) for each in sorted(board.access.guests)]
    invited = ", ".join([*guests, "its creator and the admins"])
    message = f"Invited to leaderboard {line(board.name)}: {invited}."
    if board.access.visibility is Visibility.PUBLIC:
        message += " It is currently public; `/leaderboard update` makes it private."
    if len(message) > MESSAGE_LIMIT:
        message = f"{len(guests)} people and roles are invited."
    await answer.conclude(message)


@app_commands.command(description="Join a private board with an invite code")
@app_commands.describe(code="The code at the end of the invite link")
async def join(interaction: Interaction, code: app_commands.Range[str, 1, 300]) -> None:
    """Let the person join the code's board; the whole link works too."""
    async with replying(interaction) as answer:
        viewer = await roles.viewer_of(interaction)
        store, typed = context_of(interaction).store, code.strip().rpartition("code=")[2]
        board = await invites.join_board(store, viewer, typed)
        await answer.conclude(f"You can now see the board {line(board.name)} and submit to it.")


@app_commands.command(
    description="Delete a board and everything that was submitted to it",
    extras={NEEDED_ROLE: roles.CREATOR},
)
@app_commands.describe(leaderboard_name="Board; leave empty to choose from a menu")
@app_commands.autocomplete(leaderboard_name=options.boards)
async def delete(interaction: Interaction, leaderboard_name: str | None = None) -> None:
    """Ask for the exact name before anything is deleted."""
    async with direct_response(interaction):
        if leaderboard_name is None:
            await _ask_which(interaction)
        else:
            await _confirm(interaction, leaderboard_name)


async def _confirm(interaction: Interaction, name: str) -> None:
    viewer = await roles.viewer_of(interaction)
    board = await lookup.own_board(context_of(interaction).store, viewer, name)
    await interaction.response.send_modal(DeletionForm(board.name))


async def _ask_which(interaction: Interaction) -> None:
    viewer = await roles.viewer_of(interaction)
    found = await lookup.visible_boards(context_of(interaction).store, viewer)
    names = [each.name for each in found if each.belongs_to(viewer)]
    if not names:
        raise UserError("no-board", "there is no board that you may delete")
    question = "Which board?"
    if len(names) > options.MOST_CHOICES:
        question += f" ({len(names) - options.MOST_CHOICES} more; name them in the command)"
    view = discord.ui.View(timeout=None)
    view.add_item(BoardMenu(names[: options.MOST_CHOICES]))
    await interaction.response.send_message(question, view=view, ephemeral=True)


class BoardMenu(discord.ui.DynamicItem[discord.ui.Select[Any]], template="podium:delete-which"):
    """A menu of the boards that a person may delete."""

    def __init__(self, names: Sequence[str]) -> None:
        choices = [discord.SelectOption(label=name[:100], value=name) for name in names]
        super().__init__(
            discord.ui.Select(
                custom_id="podium:delete-which", placeholder="A board", options=choices
            )
        )

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item, match
        return cls(["?"])

    @override
    async def callback(self, interaction: Interaction) -> None:
        async with direct_response(interaction):
            await _confirm(interaction, self.item.values[0])


class DeletionForm(discord.ui.Modal, title="Delete a leaderboard"):
    """A form that asks for the exact name again."""

    typed: options.FormField = options.text_field("The board's exact name")
    reason: options.FormField = options.text_field("Reason", required=False)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @override
    async def on_submit(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            viewer = await roles.viewer_of(interaction)
            deletion = boards.Deletion(
                self.name, options.typed_into(self.typed), options.typed_into(self.reason)
            )
            store = context_of(interaction).store
            archive = await boards.board_archive(store, viewer, deletion, zip_bytes=FILE_BYTES)
            where = await _send_archives(answer, _archive_drafts(self.name, archive))
            await boards.delete_board(store, viewer, deletion, archive)
            message = f"The board is deleted. Its task and the sources you may read are in {where}."
            report = Report(f"Leaderboard {self.name}", (Text(message, Tone.GOOD),))
            await answer.conclude(report)


def _archive_drafts(name: str, archive: boards.BoardArchive) -> list[MessageDraft]:
    """Return one message per zip: a message with all of them could be too large."""
    about = f"Leaderboard {line(name)}: its task and sources"
    whole = len(archive.zips) == 1
    return [
        MessageDraft(
            about if whole else f"{about}, part {number} of {len(archive.zips)}",
            (Attachment(f"{name}.zip" if whole else f"{name}-{number}.zip", data),),
        )
        for number, data in enumerate(archive.zips, start=1)
    ]


async def _send_archives(answer: InteractionReply, drafts: Sequence[MessageDraft]) -> str:
    """Send the zips by direct message or, if that is impossible, as a reply; return where.

    UserError if neither is possible.
    """
    conversation = await answer.find_conversation()
    with suppress(discord.Forbidden, discord.NotFound):
        if conversation is not None:
            for draft in drafts:
                await conversation.send(draft.content, files=as_files(draft.files))
            return "our direct messages"
    if not await answer.show_all(drafts):
        raise UserError("not-sent", "its task and sources could not be sent; nothing was deleted")
    return "the message above; save it now, because Discord deletes it later"


@app_commands.command(name="delete", description="Delete a competition; its boards stay")
@app_commands.describe(
    name="The competition's name",
    with_boards="Delete its boards too, with everything that was submitted to them",
)
@app_commands.autocomplete(name=options.competitions)
async def competition_delete(
    interaction: Interaction, name: app_commands.Range[str, 1, 100], *, with_boards: bool = False
) -> None:
    """Ask for the exact name before anything is deleted."""
    async with direct_response(interaction):
        roles.require(interaction, roles.ADMIN)
        context, viewer = context_of(interaction), await roles.viewer_of(interaction)
        found = await competitions.find_competition(context.store, context.clock, viewer, name)
        form = _CompetitionConfirmation(found.name, with_boards=with_boards)
        await interaction.response.send_modal(form)


class _CompetitionConfirmation(discord.ui.Modal, title="Delete a competition"):
    """A form that asks for the competition's exact name again."""

    typed: options.FormField = options.text_field("The competition's exact name")
    reason: options.FormField = options.text_field("Reason", required=False)

    def __init__(self, name: str, *, with_boards: bool) -> None:
        super().__init__()
        self.name = name
        self.with_boards = with_boards

    @override
    async def on_submit(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            roles.require(interaction, roles.ADMIN)
            context, viewer = context_of(interaction), await roles.viewer_of(interaction)
            store, clock = context.store, context.clock
            competitions.require_typed(self.name, options.typed_into(self.typed))
            found = await competitions.own_competition(store, clock, viewer, self.name)
            names = ", ".join(each.name for each in found.boards)
            states, words = None, f"Its boards stay: {names}."
            if self.with_boards:
                states, where = await _send_boards(answer, viewer, found.boards)
                kept = f"Their tasks and the sources you may read are in {where}."
                words = f"So are its boards: {names}. {kept}"
            await competitions.delete_competition(
                store,
                clock,
                viewer,
                self.name,
                reason=options.typed_into(self.reason),
                archives=states,
            )
            text = Text(f"The competition is deleted. {words}", Tone.GOOD)
            await answer.conclude(Report(f"Competition {self.name}", (text,)))


async def _send_boards(
    answer: InteractionReply, viewer: Viewer, found: Sequence[Board]
) -> tuple[list[str], str]:
    """Send the archive of each board; return their states, and where they are."""
    store, states, drafts = context_of(answer.interaction).store, [], []
    for each in found:
        deletion = boards.Deletion(each.name, each.name)
        archive = await boards.board_archive(store, viewer, deletion, zip_bytes=FILE_BYTES)
        states.append(archive.state)
        drafts += _archive_drafts(each.name, archive)
    return states, await _send_archives(answer, drafts)
