"""`/profile link|tokens|revoke|notices`: tokens for programs, and own notifications."""

from typing import Literal

from discord import app_commands

from bot.discord import notifications, options, roles
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.escaping import line
from bot.discord.interaction_claims import replying
from bot.domain.accounts import scope_of
from bot.domain.ids import TokenId
from bot.domain.notifications import NotificationKind
from bot.reports.blocks import Column, Report, Table
from bot.services import notify
from bot.services.tokens import create_token, revoke_token


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "profile", link, tokens, revoke, notices)


@app_commands.command(description="Create a personal token for the command line and other programs")
@app_commands.describe(
    label="Label for the token, such as laptop", scope="What the token may do (default: submit)"
)
async def link(
    interaction: Interaction,
    label: app_commands.Range[str, 1, 60] = "token",
    scope: Literal["read", "submit", "admin"] = "submit",
) -> None:
    """Show the token once, only to this person."""
    async with replying(interaction) as answer:
        store, viewer = context_of(interaction).store, await roles.viewer_of(interaction)
        made = await create_token(store, viewer.person, label, scope=scope_of(scope))
        await answer.conclude(
            f"Your token {made.token.id} ({line(made.token.label)}), shown only once; keep "
            f"it secret:\n```txt\n{made.secret}\n```\n`/profile revoke id:{made.token.id}` "
            "revokes it."
        )


@app_commands.command(description="Your tokens")
async def tokens(interaction: Interaction) -> None:
    """Show what is stored about them; their secrets are not stored."""
    async with replying(interaction) as answer:
        context = context_of(interaction)
        person = await context.person(interaction.user)
        found = await context.store.tokens.of(person.id)
        if not found:
            await answer.say("You have no token; `/profile link` creates one.")
            return
        columns = (Column("id", numeric=True), Column("label"), Column("scope"), Column("created"))
        rows = tuple(
            (str(each.id), each.label, each.scope.word, f"{each.created_at:%Y-%m-%d}")
            for each in found
        )
        await answer.show(Report("Your tokens", (Table("not revoked", columns, rows),)))


@app_commands.command(description="Revoke one of your tokens")
@app_commands.describe(number="Token number, as shown by /profile tokens")
@app_commands.rename(number="id")
@app_commands.autocomplete(number=options.own_tokens)
async def revoke(interaction: Interaction, number: options.Number) -> None:
    """Refuse all later requests with the token."""
    async with replying(interaction) as answer:
        context = context_of(interaction)
        person = await context.person(interaction.user)
        await revoke_token(context.store, person.id, TokenId(number))
        await answer.conclude(f"Token {number} is revoked.")


@app_commands.command(description="Choose your notifications by direct message")
@app_commands.describe(
    competition="A competition opens or closes",
    deadline="A board closes within 24 hours",
    lost_rank="Another person has taken your rank in the top ten",
    record="A board has a new best time",
)
async def notices(
    interaction: Interaction,
    *,
    competition: bool | None = None,
    deadline: bool | None = None,
    lost_rank: bool | None = None,
    record: bool | None = None,
) -> None:
    """Switch these notifications on or off, and show which are on."""
    async with replying(interaction) as answer:
        context = context_of(interaction)
        person = await context.person(interaction.user)
        choices = {
            NotificationKind.COMPETITION: competition,
            NotificationKind.DEADLINE: deadline,
            NotificationKind.LOST_RANK: lost_rank,
            NotificationKind.RECORD: record,
        }
        kinds = await notify.set_notifications(context.store, person.identity, choices)
        await answer.conclude(
            f"You get notifications about: {notifications.describe_kinds(kinds)}."
        )
