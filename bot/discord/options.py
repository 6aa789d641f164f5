"""Options of commands with autocompletion; parts of menus and forms."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import discord
from discord import app_commands

from bot.discord.context import FRONT_END, Interaction, context_of
from bot.discord.roles import ADMIN, has_role, typing_viewer, user_credential
from bot.domain.board import NOBODY, Board
from bot.domain.competition import Competition
from bot.domain.errors import StoreError
from bot.reports.escaping import one_line
from bot.services.competitions import visible_competitions
from bot.services.publishing.publish import REQUEST

MOST_CHOICES = 25
"""The most suggestions that Discord accepts."""
MOST_MENUS = 4
"""The most menus in a message: it has five rows, and one is for buttons."""
_CHOICE_LENGTH = 100
"""The most characters of a suggestion."""
_NEWEST = 100
"""How many of everyone's newest submissions are suggested to admins."""
Number: TypeAlias = app_commands.Range[int, 1, 2**53]
"""The number of a submission or token, up to the largest that Discord transmits exactly."""


async def boards(interaction: Interaction, current: str) -> list[app_commands.Choice[str]]:
    """Return boards whose name contains the typed text: open ones first, then by name."""
    visible = await _visible(interaction)
    now = context_of(interaction).clock.now()
    matching = [board for board in visible if current.casefold() in board.name.casefold()]
    matching.sort(key=lambda board: (not board.is_open(now), board.name.casefold()))
    return choices([board.name for board in matching])


async def _visible(interaction: Interaction) -> list[Board]:
    """Return the boards that the person may see; in a server this does not call the store."""
    identity = user_credential(interaction.user.id)
    try:
        viewer = await typing_viewer(interaction)
    except StoreError:
        return []  # the command itself reports the error
    return context_of(interaction).snapshot.boards_for(viewer, identity)


async def competitions(interaction: Interaction, current: str) -> list[app_commands.Choice[str]]:
    """Return competitions whose name contains the typed text."""
    context = context_of(interaction)

    async def find() -> tuple[Competition, ...]:
        typing = await typing_viewer(interaction)
        person = await context.store.people.find(user_credential(interaction.user.id))
        viewer = replace(typing, person=NOBODY if person is None else person.id)
        return await visible_competitions(context.store, context.clock, viewer)

    key = "competitions", interaction.user.id, interaction.guild_id
    try:
        visible = await context.snapshot.cached(key, find)
    except StoreError:
        return []
    return choices([each.name for each in visible if current.casefold() in each.name.casefold()])


async def gpus(interaction: Interaction, current: str) -> list[app_commands.Choice[str]]:
    """Return GPU types of the chosen board, or of all boards, each after those already typed."""
    *chosen, part = [each.strip() for each in current.split(",")]
    visible = await _visible(interaction)
    chosen_board = getattr(interaction.namespace, "leaderboard_name", None)
    searched = [board for board in visible if board.name == chosen_board] or visible
    types = sorted({gpu for board in searched for gpu in board.gpus} - set(chosen))
    fitting = [gpu for gpu in types if part.casefold() in gpu.casefold()]
    return choices([", ".join([*chosen, gpu]) for gpu in fitting])


async def languages(interaction: Interaction, current: str) -> list[app_commands.Choice[str]]:
    """Return the languages of the chosen board's templates that contain the typed text."""
    chosen = getattr(interaction.namespace, "leaderboard_name", None)
    board = next((each for each in await _visible(interaction) if each.name == chosen), None)
    if board is None:
        return []
    context, version = context_of(interaction), board.task_version

    async def find() -> list[str]:
        found = await context.store.boards.version(version)
        return [] if found is None else list(found.definition.templates)

    try:
        names = await context.snapshot.cached(("templates", version), find)
    except StoreError:
        return []
    return choices([name for name in names if current.casefold() in name.casefold()])


async def own_submissions(interaction: Interaction, current: str) -> list[app_commands.Choice[int]]:
    """Return the person's newest submissions whose number begins as typed."""
    store, user = context_of(interaction).store, interaction.user.id

    async def find() -> dict[int, str]:
        person = await store.people.find(user_credential(user))
        history = () if person is None else await store.submissions.history(person.id, limit=200)
        return {each.id: f"#{each.id} {each.file_name}, {each.mode}" for each in history}

    return await _own_choices(interaction, "submissions", find, current)


async def any_submissions(interaction: Interaction, current: str) -> list[app_commands.Choice[int]]:
    """Return for an admin the newest submissions with a number that begins as typed."""
    if not has_role(interaction, ADMIN):
        return []
    context = context_of(interaction)
    store = context.store

    async def find() -> dict[int, str]:
        submissions = await store.submissions.newest(_NEWEST)
        owners = {each: await store.people.get(each) for each in {s.person for s in submissions}}
        by = {each: "" if one is None else f", by {one.name}" for each, one in owners.items()}
        return {
            each.id: one_line(f"#{each.id} {each.file_name[:50]}, {each.mode}{by[each.person]}")
            for each in submissions
        }

    try:  # read once for all admins, whatever they type
        names = await context.snapshot.cached("newest submissions", find)
    except StoreError:
        return []
    return _numbered_choices(names, current)


async def own_checks(interaction: Interaction, current: str) -> list[app_commands.Choice[int]]:
    """Return the person's newest checks of tasks whose number begins as typed."""
    store, user = context_of(interaction).store, interaction.user.id

    async def find() -> dict[int, str]:
        person = await store.people.find(user_credential(user))
        if person is None:
            return {}
        checks = await store.publications.summaries_of(FRONT_END, person.id)
        names = {each.id: REQUEST.validate_json(each.wish).name or "" for each in checks}
        return {number: f"{number}: {one_line(name)}" for number, name in names.items()}

    return await _own_choices(interaction, "checks", find, current)


async def own_tokens(interaction: Interaction, current: str) -> list[app_commands.Choice[int]]:
    """Return the person's tokens whose number begins as typed."""
    store, user = context_of(interaction).store, interaction.user.id

    async def find() -> dict[int, str]:
        person = await store.people.find(user_credential(user))
        tokens = () if person is None else await store.tokens.of(person.id)
        return {each.id: f"{each.id}: {each.label}" for each in tokens}

    return await _own_choices(interaction, "tokens", find, current)


async def _own_choices(
    interaction: Interaction, kind: str, find: Callable[[], Awaitable[dict[int, str]]], typed: str
) -> list[app_commands.Choice[int]]:
    """Return suggestions of what belongs to the person, kept for a few seconds."""
    try:
        names = await context_of(interaction).snapshot.cached((kind, interaction.user.id), find)
    except StoreError:
        return []
    return _numbered_choices(names, typed)


def _numbered_choices(names: Mapping[int, str], typed: str) -> list[app_commands.Choice[int]]:
    """Return suggestions for the numbers that begin as typed, first the one that is typed whole."""
    fitting = [number for number in names if str(number).startswith(typed)]
    fitting.sort(key=lambda number: str(number) != typed)
    return [
        app_commands.Choice(name=names[number][:_CHOICE_LENGTH], value=number)
        for number in fitting[:MOST_CHOICES]
    ]


def choices(names: list[str]) -> list[app_commands.Choice[str]]:
    """Return as many suggestions as Discord accepts; longer names can still be typed."""
    fitting = [name for name in names if 1 <= len(name) <= _CHOICE_LENGTH]
    return [app_commands.Choice(name=name, value=name) for name in fitting[:MOST_CHOICES]]


def gpu_names(text: str | None) -> tuple[str, ...]:
    """Return the GPU types of a comma-separated list."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def split_into_menus(gpus: Sequence[str]) -> list[Sequence[str]]:
    """Split the GPU types into menus, as many as fit."""
    end = min(len(gpus), MOST_MENUS * MOST_CHOICES)
    return [gpus[start : start + MOST_CHOICES] for start in range(0, end, MOST_CHOICES)]


def gpu_menu(
    custom_id: str, gpus: Sequence[str], chosen: Collection[str] = (), *, least: int = 1, most: int
) -> discord.ui.Select[Any]:
    """Return a menu of these GPU types, of which `least` to `most` can be chosen."""
    span = f"{gpus[0]} to {gpus[-1]}" if len(gpus) > 1 else "".join(gpus)
    return discord.ui.Select(
        custom_id=custom_id,
        placeholder=f"GPU types: {span}",
        min_values=least,
        max_values=most,
        options=[discord.SelectOption(label=each, default=each in chosen) for each in gpus],
    )


def offered_values(item: discord.ui.Item[Any]) -> list[str]:
    """Return what a menu of a message offers; nothing for another component."""
    return [each.value for each in item.options] if isinstance(item, discord.ui.Select) else []


FormField: TypeAlias = discord.ui.Label[Any]
"""A field of a form, with its label."""


def text_field(text: str, *, about: str | None = None, required: bool = True) -> FormField:
    """Return a field of a form for one line of text."""
    component: discord.ui.TextInput[Any] = discord.ui.TextInput(required=required, max_length=300)
    return discord.ui.Label(text=text, description=about, component=component)


def typed_into(field: FormField) -> str:
    """Return what was typed into a field of a form."""
    return field.component.value if isinstance(field.component, discord.ui.TextInput) else ""
