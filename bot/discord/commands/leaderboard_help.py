"""`/leaderboard help`: what to do first, and every command."""

from collections.abc import Iterator
from typing import Any

import discord
from discord import app_commands

from bot.discord.context import Tree, add_commands
from bot.discord.draw import MessageDraft
from bot.discord.escaping import MOST
from bot.discord.responses import replying


async def setup(tree: Tree) -> None:
    """Add the command."""
    add_commands(tree, "leaderboard", show_help)


_HELP = """\
**Getting started**
1. `/leaderboard list` shows the boards; `/leaderboard task` shows the task of a board.
2. `/leaderboard template` gives you a starter file.
3. `/leaderboard submit test` tests it; you get a private thread with the full report.
4. `/leaderboard submit ranked` times and ranks it; `/leaderboard show` shows the standings.

A file may name its board and GPU types in a header, the comments at its top:
```
#!PODIUM leaderboard vectoradd
#!PODIUM gpus H100 L4
```
`/profile notices` turns on notifications about deadlines, lost ranks and records.
Times are medians with a 95 % confidence interval. Lower is better, and times that cannot be told \
apart share a rank. All commands are listed below."""


@app_commands.command(name="help", description="Getting started and list of commands")
async def show_help(interaction: discord.Interaction[Any]) -> None:
    """Show the first steps, then the list."""
    async with replying(interaction) as answer:
        found = getattr(interaction.client, "tree", None)
        lines = [] if found is None else list(every_command(found))
        await answer.show_all(
            [MessageDraft(_HELP), *(MessageDraft(text) for text in packed(lines))]
        )


def every_command(tree: Tree) -> Iterator[str]:
    """Yield a line for each command, then for each menu, as shown in Discord."""
    for each in sorted(tree.walk_commands(), key=lambda one: one.qualified_name):
        if isinstance(each, app_commands.Command):
            yield f"`/{each.qualified_name}` {each.description}"
    for kind, words in _MENUS.items():
        for menu in tree.get_commands(type=kind):
            yield f"{words} > Apps > `{menu.name}`"


_MENUS = {
    discord.AppCommandType.message: "Right-click a message",
    discord.AppCommandType.user: "Right-click a person",
}


def packed(lines: list[str]) -> Iterator[str]:
    """Yield the lines in as few messages as possible."""
    text = ""
    for line in lines:
        if text and len(text) + len(line) + 1 > MOST:
            yield text
            text = ""
        text = f"{text}\n{line}" if text else line
    if text:
        yield text
