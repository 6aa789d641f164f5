"""`/admin final`: compares the first entries of a board, each with the one before."""

from discord import app_commands

from bot.discord import options, roles
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.escaping import line
from bot.discord.responses import replying
from bot.domain.errors import UserError
from bot.domain.finals import DEFAULT_TOP, LEAST_TOP, MOST_TOP, FinalRequest
from bot.reports.confirmations import finals_report
from bot.services import finals


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "admin", final)


@app_commands.command(description="Compare a board's first entries, each with the one before")
@app_commands.describe(
    leaderboard_name="The board",
    top="How many entries to compare",
    gpu="Only this GPU type",
    cancel="Cancel the running final",
    reason="Reason, kept in the audit log",
)
@app_commands.autocomplete(leaderboard_name=options.boards, gpu=options.gpus)
async def final(
    interaction: Interaction,
    *,
    leaderboard_name: str,
    top: app_commands.Range[int, LEAST_TOP, MOST_TOP] = DEFAULT_TOP,
    gpu: str | None = None,
    cancel: bool = False,
    reason: app_commands.Range[str, 0, 300] = "",
) -> None:
    """Start a final; while one runs, show how far it is."""
    async with replying(interaction) as answer:
        decision = await roles.admin_decision(interaction, reason)
        store, viewer = context_of(interaction).store, await roles.viewer_of(interaction)
        name = line(leaderboard_name)
        if cancel:
            await finals.cancel_final(store, viewer, decision, leaderboard_name)
            await answer.say(f"The final of {name} is cancelled; its standings stay as they are.")
            return
        request = FinalRequest(leaderboard_name, gpu, top)
        try:
            started = await finals.start_final(store, viewer, decision, request)
        except UserError as error:
            if error.code != "final-running":
                raise
            found = await finals.finals_of(store, viewer, leaderboard_name)
            await answer.show(finals_report(leaderboard_name, found))
            return
        gpus = ", ".join(line(each.gpu) for each in started)
        await answer.say(
            f"The final of {name} on {gpus} has begun. `/leaderboard show` shows its progress; the "
            "table goes to the board's page, and to everyone who is notified of records."
        )
