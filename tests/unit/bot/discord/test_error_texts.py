"""Every error that Podium can raise is fit for Discord: a mark, a capital, commands as links."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

import bot
from bot.discord import commands, responses
from bot.discord.client import PodiumClient
from bot.discord.responses import error_message
from bot.domain.errors import UserError
from runners import plugins

ROOT = Path(bot.__file__).parent
GROUPS = "leaderboard|submission|admin|profile"
NAMED = re.compile(rf"/((?:{GROUPS})(?: [a-z-]+)*)\b(?!/)")
LINK = re.compile(r"</([a-z -]+):7>")
BEGINNING = re.compile(r"⚠️ ([^a-z]|[a-z_.]+[:/.(=]|[a-z]+-[a-z]|ncu )")
"""A capital, or no word of English: the name of a file, an option or a program."""
HELD = "X"
"""What stands for a value in a text."""


def texts(node: ast.AST) -> Iterator[str]:
    """The texts that an expression may be, with a placeholder for each value."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else HELD for part in parts
            )
        case ast.IfExp(body=one, orelse=other):
            yield from (*texts(one), *texts(other))
        case _:
            pass


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def errors() -> Iterator[tuple[str, str]]:
    """Each text that is the message of a UserError, where it is written or named beforehand."""
    for path, tree in modules():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from ((f"{path}:{function.name}", text) for text in errors_of(function))


def errors_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    nodes = list(ast.walk(function))
    named: dict[str, list[str]] = {}
    for each in nodes:
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            named.setdefault(each.targets[0].id, []).extend(texts(each.value))
    for call in nodes:
        if isinstance(call, ast.Call) and "UserError" in ast.unparse(call.func):
            for message in call.args[1:2]:
                yield from texts(message)
                yield from named.get(ast.unparse(message), [])


ERRORS = sorted(set(errors()))


@pytest.fixture
async def paths() -> frozenset[str]:
    """The commands that the bot publishes."""
    tree = PodiumClient(Mock(), frozenset()).tree
    for name in plugins.names(commands):
        await plugins.load(commands, name).setup(tree)
    return frozenset(each.qualified_name for each in tree.walk_commands())


async def test_no_error_shows_a_bare_command_where_a_link_could_stand(
    paths: frozenset[str],
) -> None:
    bare, unknown, unmarked = [], [], []
    with patch.dict(responses.COMMAND_IDS, dict.fromkeys(GROUPS.split("|"), 7), clear=True):
        for at, text in ERRORS:
            shown = error_message(UserError("x", text)) or ""
            unknown += [(at, text) for path in LINK.findall(shown) if path not in paths]
            bare += [(at, text)] if NAMED.search(LINK.sub("", shown)) else []
            unmarked += [] if BEGINNING.match(shown) else [(at, text)]
    assert len(ERRORS) > 200
    assert (bare, unknown, unmarked) == ([], [], [])


def literals() -> Iterator[tuple[str, str]]:
    """Every text in the bot and in what it calls, except documentation and descriptions.

    Discord shows the description of an option as it is.
    """
    for path, tree in modules():
        if path.startswith(("discord", "domain", "services", "reports")):
            skipped = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
            for each in ast.walk(tree):
                if isinstance(each, ast.JoinedStr):
                    skipped |= {id(part) for part in each.values}
                elif isinstance(each, ast.AsyncFunctionDef):
                    marks = (part for mark in each.decorator_list for part in ast.walk(mark))
                    skipped |= {id(part) for part in marks}
            for each in ast.walk(tree):
                if id(each) not in skipped and isinstance(each, ast.Constant | ast.JoinedStr):
                    yield from ((f"{path}:{each.lineno}", text) for text in texts(each))


async def test_a_text_that_names_a_command_names_one_that_exists_as_code(
    paths: frozenset[str],
) -> None:
    named = [(at, text) for at, text in literals() if NAMED.search(text)]
    wrong = [
        (at, code)
        for at, text in named
        for code in NAMED.findall(text)
        if not any(f"`/{path}`" in text or f"`/{path} " in text for path in paths if path in code)
    ]
    assert len(named) > 20
    assert wrong == []
