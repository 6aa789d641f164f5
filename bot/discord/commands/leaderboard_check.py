"""`/leaderboard check show|cancel`: the check of a submitted task, by its number."""

from discord import app_commands

from bot.discord import buttons, options, roles
from bot.discord.context import NEEDED_ROLE, Interaction, Tree, add_commands
from bot.discord.interaction_claims import replying
from bot.discord.publication_messages import show_check
from bot.domain.ids import PublicationId


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "leaderboard check", show, cancel)


@app_commands.command(
    name="show",
    description="Show the progress or the outcome of a task's check",
    extras={NEEDED_ROLE: roles.CREATOR},
)
@app_commands.describe(number="Check number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_checks)
async def show(interaction: Interaction, number: options.Number) -> None:
    """Show it as it is now."""
    async with replying(interaction) as answer:
        await show_check(answer, PublicationId(number))


@app_commands.command(
    name="cancel",
    description="Cancel a task's check; nothing is published",
    extras={NEEDED_ROLE: roles.CREATOR},
)
@app_commands.describe(number="Check number")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_checks)
async def cancel(interaction: Interaction, number: options.Number) -> None:
    """Stop its runs; admins may cancel anyone's."""
    async with replying(interaction) as answer:
        await buttons.cancel_check(answer, PublicationId(number))
