"""Command groups, and options with autocompletion."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import discord
from discord import app_commands

from bot.discord.context import context_of
from bot.discord.roles import ADMIN, has_role, viewer_of
from bot.domain.errors import StoreError
from bot.domain.ids import SubmissionId
from bot.reports.escaping import one_line
from bot.services.lookup import visible_boards

MOST_CHOICES = 25
"""The most suggestions that Discord accepts."""
MOST_MENUS = 4
"""The most menus in a message: it has five rows, and one is for buttons."""
_LONGEST = 100
_DIGITS = 15
"""The most digits of a typed number, so that ten times it is still exact in Discord."""


async def boards(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[str]]:
    """Return boards whose name contains the typed text: open ones first, then by name."""
    door = context_of(interaction)
    try:
        found = await visible_boards(door.store, await viewer_of(interaction))
    except StoreError:
        return []  # if they continue typing, the command itself reports the error
    now = door.clock.now()
    wanted = [board for board in found if current.casefold() in board.name.casefold()]
    wanted.sort(key=lambda board: (not board.is_open(now), board.name.casefold()))
    return choices([board.name for board in wanted])


async def gpus(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[str]]:
    """Return GPU types of the chosen board, or of all; typed ones stay in front."""
    door = context_of(interaction)
    *chosen, part = [each.strip() for each in current.split(",")]
    try:
        found = await visible_boards(door.store, await viewer_of(interaction))
    except StoreError:
        return []
    named = getattr(interaction.namespace, "leaderboard_name", None)
    of_board = [board for board in found if board.name == named] or found
    kinds = sorted({gpu for board in of_board for gpu in board.gpus} - set(chosen))
    fitting = [gpu for gpu in kinds if part.casefold() in gpu.casefold()]
    return choices([", ".join([*chosen, gpu]) for gpu in fitting])


async def own_submissions(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[int]]:
    """Return the person's newest submissions whose number begins as typed."""
    door = context_of(interaction)
    try:
        person = await door.person(interaction.user)
        found = await door.store.submissions.history(person.id, limit=200)
    except StoreError:
        return []
    fitting = [each for each in found if str(each.id).startswith(current)]
    return [
        app_commands.Choice(name=f"#{each.id} {each.file_name}, {each.mode}"[:100], value=each.id)
        for each in fitting[:MOST_CHOICES]
    ]


async def any_submissions(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[int]]:
    """Return for an admin the submissions whose number begins as typed, with their owners."""
    if not current.isdecimal() or len(current) > _DIGITS or not has_role(interaction, ADMIN):
        return []
    store = context_of(interaction).store
    typed = int(current)
    found: list[app_commands.Choice[int]] = []
    try:
        for number in (typed, *range(10 * typed, 10 * typed + 10)):
            submission = await store.submissions.get(SubmissionId(number))
            if submission is None:
                continue
            person = await store.people.get(submission.person)
            who = "" if person is None else f", by {person.name}"
            name = f"#{number} {submission.file_name[:50]}, {submission.mode}{who}"
            found.append(app_commands.Choice(name=one_line(name)[:_LONGEST], value=number))
    except StoreError:
        return []
    return found


async def own_tokens(
    interaction: discord.Interaction[Any], current: str
) -> list[app_commands.Choice[int]]:
    """Return the person's tokens whose number begins as typed."""
    door = context_of(interaction)
    try:
        person = await door.person(interaction.user)
        found = await door.store.tokens.of(person.id)
    except StoreError:
        return []
    fitting = [each for each in found if str(each.id).startswith(current)]
    return [
        app_commands.Choice(name=f"{each.id}: {each.label}"[:_LONGEST], value=each.id)
        for each in fitting[:MOST_CHOICES]
    ]


def choices(names: list[str]) -> list[app_commands.Choice[str]]:
    """Return as many suggestions as Discord accepts; longer names can still be typed."""
    fitting = [name for name in names if 1 <= len(name) <= _LONGEST]
    return [app_commands.Choice(name=name, value=name) for name in fitting[:MOST_CHOICES]]


def gpu_names(text: str | None) -> tuple[str, ...]:
    """Return the GPU types of a comma-separated list."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def in_menus(gpus: Sequence[str]) -> list[Sequence[str]]:
    """Split the GPU types into menus, as many as fit."""
    end = min(len(gpus), MOST_MENUS * MOST_CHOICES)
    return [gpus[start : start + MOST_CHOICES] for start in range(0, end, MOST_CHOICES)]


def span(gpus: Sequence[str]) -> str:
    """Return a menu's range of GPU types in few words."""
    return f"{gpus[0]} to {gpus[-1]}" if len(gpus) > 1 else "".join(gpus)


Tree: TypeAlias = app_commands.CommandTree[Any]
"""The commands of a client."""

_DESCRIPTIONS = {
    "leaderboard": "Submit to boards, view and create them",
    "leaderboard submit": "Submit a kernel to a board",
    "submission": "Your submissions",
    "admin": "Moderation: people, submissions and limits",
    "profile": "Your account",
}


_OF_SERVERS = frozenset({"admin"})
"""Groups that depend on roles in a guild, so that they are useless in direct messages."""
_ON_SERVERS = app_commands.AppCommandContext(guild=True)


def group(tree: Tree, name: str) -> app_commands.Group:
    """Return the group of this name, created on first use; a space separates a subgroup."""
    parent_name, _, own_name = name.rpartition(" ")
    parent = group(tree, parent_name) if parent_name else None
    found = (parent or tree).get_command(own_name)
    if isinstance(found, app_commands.Group):
        return found
    made = app_commands.Group(
        name=own_name,
        description=_DESCRIPTIONS[name],
        parent=parent,
        allowed_contexts=_ON_SERVERS if name in _OF_SERVERS else None,
    )
    if parent is None:
        tree.add_command(made)
    return made
