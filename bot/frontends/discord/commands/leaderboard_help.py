"""`/leaderboard help`: what to do first."""

from typing import Any

import discord
from discord import app_commands

from bot.frontends.discord.answers import answering
from bot.frontends.discord.groups import Tree, group

_HELP = """\
**From nothing to a ranked kernel**
1. `/leaderboard list` shows the boards, `/leaderboard task` what one asks for.
2. `/leaderboard template` gives you a file to begin with.
3. `/leaderboard submit test` checks it; you get a private thread with the whole report.
4. `/leaderboard submit ranked` times and ranks it; `/leaderboard show` has the standings.

A file may name its board and GPU types itself, in the comments at its top:
```
#!PODIUM leaderboard vectoradd
#!PODIUM gpus H100 L4
```
`/profile notices` tells you of deadlines, lost ranks and records; nothing unless you ask.
`/submission show`, `source` and `cancel` take the number of a submission. Times are medians with a
95 % interval; lower is better, and times that cannot be told apart share a rank."""


async def setup(tree: Tree) -> None:
    """Add the command."""
    group(tree, "leaderboard").add_command(show_help)


@app_commands.command(name="help", description="What to do first, with an example")
async def show_help(interaction: discord.Interaction[Any]) -> None:
    """The first steps."""
    async with answering(interaction) as answer:
        await answer.say(_HELP)
