"""`/leaderboard submit test|benchmark|ranked|profile`: a file in, a stored submission out."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options, submitting
from bot.discord.groups import Tree, group
from bot.discord.interaction_claims import keeping
from runners.contract.task import Mode

_DESCRIPTIONS = {
    Mode.TEST: "Check a kernel against the tests, without timing it",
    Mode.BENCHMARK: "Check and time a kernel, without ranking it",
    Mode.PROFILE: "Run a kernel once under the profiler",
    Mode.RANKED: "Check, time and rank a kernel",
}


async def setup(tree: Tree) -> None:
    """Add one command for each mode."""
    parent = group(tree, "leaderboard submit")
    for mode, description in _DESCRIPTIONS.items():
        parent.add_command(_command(mode, description))


def _command(mode: Mode, description: str) -> app_commands.Command[Any, ..., Any]:
    @app_commands.command(name=mode.value, description=description)
    @app_commands.describe(
        script="Your kernel, one source file",
        leaderboard_name="The board; not needed when the file's heading names it",
        gpus="GPU types, separated by commas; not needed when the board has one",
    )
    @app_commands.autocomplete(leaderboard_name=options.boards, gpus=options.gpus)
    async def submit(
        interaction: discord.Interaction[Any],
        script: discord.Attachment,
        leaderboard_name: str | None = None,
        gpus: str | None = None,
    ) -> None:
        async with keeping(interaction) as answer:
            upload = submitting.Upload(
                file_name=script.filename,
                content=await submitting.read(script),
                mode=mode,
                board=leaderboard_name,
                gpus=options.gpu_names(gpus),
            )
            await submitting.take_in(answer, upload)

    return submit
