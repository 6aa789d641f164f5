"""Everything that the bot sends has a picture, dark and light, in `tests.benchmarks.phone`."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import discord
from discord import app_commands

import bot.discord
from bot.discord import questions
from bot.discord.buttons import BoardAction, SubmissionAction
from tests.benchmarks.phone_album import COMMANDS, SOURCES
from tests.doubles.discord_room import room

CHOICES = {"NotificationButton": ("on", "off")}
BY_ACTION = {"SubmissionButton", "BoardButton"}
"""Buttons whose actions have pictures of their own."""


async def test_every_command_button_menu_form_and_question_has_a_picture() -> None:
    async with room(commands=True) as here:
        tree: app_commands.CommandTree[Any] = here.client.tree  # type: ignore[attr-defined]
        commands = {each.qualified_name for each in tree.walk_commands() if _is_command(each)}
        for kind in (discord.AppCommandType.message, discord.AppCommandType.user):
            commands |= {each.name for each in tree.get_commands(type=kind)}
        items = {
            each.__name__ for each in here.client._connection._view_store._dynamic_items.values()
        }
    assert commands == COMMANDS
    sources = {name for names in SOURCES.values() for name in names}
    wanted = {f"button {each}" for each in SubmissionAction}
    wanted |= {f"board button {each}" for each in BoardAction}
    wanted |= {f"question {each}" for each in questions.KINDS}
    wanted |= {each.__name__ for each in _forms()}
    for item in items - BY_ACTION:
        wanted |= {f"{item} {choice}".strip() for choice in CHOICES.get(item, ("",))}
    assert {each for each in sources if "." not in each} == wanted


def _is_command(found: object) -> bool:
    return isinstance(found, app_commands.Command)


def _forms() -> Iterator[type[discord.ui.Modal]]:
    for each in discord.ui.Modal.__subclasses__():
        if each.__module__.startswith("bot.discord"):
            yield each


ANSWERS = {"responses", "interaction_claims", "client", "unfinished", "questions", "pagination"}
"""Modules that answer a command or a click, which have pictures of their own."""


def test_every_function_that_begins_a_message_has_a_picture() -> None:
    found = {
        f"{file.stem}.{function}"
        for file in Path(bot.discord.__file__).parent.glob("*.py")
        if file.stem not in ANSWERS
        for function in _senders(file)
    }
    sources = {name for names in SOURCES.values() for name in names if "." in name}
    assert {each for each in sources if each.split(".")[0] not in ANSWERS} == found


def _senders(file: Path) -> Iterator[str]:
    """Yield the functions in which something is sent to a channel or a conversation."""
    module = ast.parse(file.read_text(encoding="utf-8"))
    classes = [each for each in module.body if isinstance(each, ast.ClassDef)]
    for statement in [*module.body, *(each for found in classes for each in found.body)]:
        if isinstance(statement, ast.AsyncFunctionDef):
            called = [each.func for each in ast.walk(statement) if isinstance(each, ast.Call)]
            names = {getattr(each, "attr", getattr(each, "id", "")) for each in called}
            if names & {"send", "_post"}:
                yield statement.name
