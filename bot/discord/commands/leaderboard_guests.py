"""`/leaderboard invite|uninvite`: who may see and enter a private board."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias

import discord
from discord import app_commands

from bot.discord import options, roles
from bot.discord.context import Tree, add_commands, context_of
from bot.discord.escaping import MOST, line
from bot.discord.responses import InteractionReply, replying
from bot.domain.board import Board, Viewer, Visibility
from bot.ports import Store
from bot.services.boards import Invitation
from bot.services.boards import invite as let_in
from bot.services.boards import uninvite as turn_away


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "leaderboard", invite, uninvite)


Guest: TypeAlias = discord.Member | discord.User | discord.Role

_GUESTS = {
    "who": "A person or a role",
    "who2": "Another person or role",
    "who3": "Another person or role",
    "who4": "Another person or role",
    "who5": "Another person or role",
}


@app_commands.command(description="Invite people and roles to a private board")
@app_commands.describe(leaderboard_name="The board", **_GUESTS)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def invite(  # noqa: PLR0913  an argument for each option
    interaction: discord.Interaction[Any],
    *,
    leaderboard_name: str,
    who: Guest,
    who2: Guest | None = None,
    who3: Guest | None = None,
    who4: Guest | None = None,
    who5: Guest | None = None,
) -> None:
    """Add to the people who are already invited."""
    await _change(interaction, let_in, leaderboard_name, (who, who2, who3, who4, who5))


@app_commands.command(description="Remove people and roles from a private board")
@app_commands.describe(leaderboard_name="The board", **_GUESTS)
@app_commands.autocomplete(leaderboard_name=options.boards)
async def uninvite(  # noqa: PLR0913  an argument for each option
    interaction: discord.Interaction[Any],
    *,
    leaderboard_name: str,
    who: Guest,
    who2: Guest | None = None,
    who3: Guest | None = None,
    who4: Guest | None = None,
    who5: Guest | None = None,
) -> None:
    """Their submissions remain theirs."""
    await _change(interaction, turn_away, leaderboard_name, (who, who2, who3, who4, who5))


async def _change(
    interaction: discord.Interaction[Any],
    change: Callable[[Store, Viewer, Invitation], Awaitable[Board]],
    board: str,
    guests: Iterable[Guest | None],
) -> None:
    async with replying(interaction) as answer:
        viewer = await roles.viewer_of(interaction)
        invitation = Invitation(board, _named(guests))
        await _show(answer, await change(context_of(interaction).store, viewer, invitation))


def _named(guests: Iterable[Guest | None]) -> frozenset[str]:
    return frozenset(
        roles.role(each.id) if isinstance(each, discord.Role) else roles.person(each.id)
        for each in guests
        if each is not None
    )


async def _show(answer: InteractionReply, board: Board) -> None:
    words = f"Leaderboard {line(board.name)} is for {_mentions(board.access.guests) or 'nobody'}"
    words += ", its creator and the admins."
    if board.access.visibility is Visibility.PUBLIC:
        words += " It is currently public; `/leaderboard update` makes it private."
    await answer.say(words if len(words) <= MOST else f"{len(board.access.guests)} are invited.")


def _mentions(guests: Iterable[str]) -> str:
    """Return the guests as clickable mentions that notify no one."""
    return ", ".join(roles.mention(each) for each in sorted(guests))
