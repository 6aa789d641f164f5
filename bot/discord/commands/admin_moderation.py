"""`/admin pause|resume`: submissions, those to one board, or the jobs of one GPU type."""

from typing import Any

import discord
from discord import app_commands

from bot.discord import options
from bot.discord.context import door_of
from bot.discord.escaping import line
from bot.discord.groups import Tree, group
from bot.discord.responses import answering
from bot.discord.roles import admin_deed
from bot.discord.viewers import viewer_of
from bot.domain.errors import UserError
from bot.services import moderation
from bot.services.lookup import find_board

_Reason = app_commands.Range[str, 1, 300]
_WHAT = {
    "leaderboard_name": "Only this board",
    "gpu": "Only the jobs of this GPU type, which wait in the queue meanwhile",
}


async def setup(tree: Tree) -> None:
    """Add both commands."""
    parent = group(tree, "admin")
    parent.add_command(pause)
    parent.add_command(resume)


@app_commands.command(description="Take no more submissions; what is stored is judged on")
@app_commands.describe(reason="Shown to everyone who submits", **_WHAT)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def pause(
    interaction: discord.Interaction[Any],
    *,
    reason: _Reason,
    leaderboard_name: str | None = None,
    gpu: str | None = None,
) -> None:
    """Until `/admin resume`, restarts included."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        store = door_of(interaction).store
        _require_one(leaderboard_name, gpu)
        if leaderboard_name is not None:
            board = await find_board(store, await viewer_of(interaction), leaderboard_name)
            await moderation.pause_board(store, deed, board)
            await answer.say(f"Submissions to {line(board.name)} are paused.")
        elif gpu is not None:
            found = await moderation.pause_gpu(store, deed, gpu)
            await answer.say(
                f"Jobs on {line(found)} wait in the queue; what runs there goes on to its end."
            )
        else:
            await moderation.pause(store, deed)
            await answer.say("Submissions are paused.")


@app_commands.command(description="End a pause: of all submissions, of a board, of a GPU type")
@app_commands.describe(
    reason="Kept in the audit", leaderboard_name="Only this board", gpu="Only this GPU type"
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def resume(
    interaction: discord.Interaction[Any],
    *,
    reason: app_commands.Range[str, 0, 300] = "",
    leaderboard_name: str | None = None,
    gpu: str | None = None,
) -> None:
    """Ends just this pause; others stay."""
    async with answering(interaction) as answer:
        deed = await admin_deed(interaction, reason)
        store = door_of(interaction).store
        _require_one(leaderboard_name, gpu)
        if leaderboard_name is not None:
            board = await find_board(store, await viewer_of(interaction), leaderboard_name)
            await moderation.resume_board(store, deed, board)
            await answer.say(f"Submissions to {line(board.name)} are taken again.")
        elif gpu is not None:
            found = await moderation.resume_gpu(store, deed, gpu)
            await answer.say(f"Jobs on {line(found)} run again.")
        else:
            await moderation.resume(store, deed)
            await answer.say("Submissions are taken again.")


def _require_one(board: str | None, gpu: str | None) -> None:
    if board is not None and gpu is not None:
        raise UserError("two-things", "name a board or a GPU type, not both")
