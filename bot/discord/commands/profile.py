"""`/profile link|tokens|revoke|notices|export|delete`: tokens, notifications, own data."""

from contextlib import suppress
from typing import Literal

import discord
from discord import app_commands
from typing_extensions import override

from bot.discord import channels, notifications, options, roles
from bot.discord.context import Interaction, Tree, add_commands, context_of
from bot.discord.draw import FILE_BYTES, MessageDraft
from bot.discord.escaping import line
from bot.discord.interaction_claims import direct_response, replying
from bot.domain.accounts import scope_of
from bot.domain.errors import UserError
from bot.domain.ids import TokenId
from bot.domain.notifications import NotificationKind
from bot.reports.blocks import Attachment, Column, Report, Table
from bot.services import accounts, notify
from bot.services.tokens import create_token, revoke_token


async def setup(tree: Tree) -> None:
    """Add this file's commands."""
    add_commands(tree, "profile", link, tokens, revoke, notices, export, delete)


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
            "revokes it.",
            secret=made.secret,
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
    result="A run of yours that took two minutes or more has ended",
)
async def notices(
    interaction: Interaction,
    *,
    competition: bool | None = None,
    deadline: bool | None = None,
    lost_rank: bool | None = None,
    record: bool | None = None,
    result: bool | None = None,
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
            NotificationKind.RESULT: result,
        }
        kinds = await notify.set_notifications(context.store, person.identity, choices)
        text = (
            f"You get notifications about: {notifications.describe_kinds(kinds)}. "
            "This command's options switch each on or off."
        )
        user = interaction.user.id
        if kinds and await channels.direct_messages(interaction.client, context, user) is None:
            how = channels.OPEN_CONVERSATION
            text += f"\nI may not begin direct messages with you. To get these, {how}."
        await answer.conclude(text)


@app_commands.command(description="Get everything that is stored about you, as a zip")
async def export(interaction: Interaction) -> None:
    """Send it only to this person, in several zips if one would be too large."""
    async with replying(interaction) as answer:
        context = context_of(interaction)
        person = await context.person(interaction.user)
        found = await accounts.export_account(context.store, person.id, FILE_BYTES)
        whole = len(found.zips) == 1
        drafts = [
            MessageDraft(
                "Your data" if whole else f"Your data, part {number} of {len(found.zips)}",
                (Attachment("podium.zip" if whole else f"podium-{number}.zip", data),),
            )
            for number, data in enumerate(found.zips, start=1)
        ]
        await answer.show_all(drafts)


@app_commands.command(description="Delete your account and your data; scores stay without a name")
async def delete(interaction: Interaction) -> None:
    """Ask for a typed word before anything is deleted."""
    async with direct_response(interaction):
        await interaction.response.send_modal(DeletionOfAccount())


_WORD = "delete"


class DeletionOfAccount(discord.ui.Modal, title="Delete your account"):
    """A form in which the person types a word, because a deletion cannot be undone."""

    typed: options.FormField = options.text_field(
        f"Type {_WORD}",
        about="Deletes sources, reports, tokens, settings. Scores stay as 'deleted account'.",
    )

    @override
    async def on_submit(self, interaction: Interaction) -> None:
        async with replying(interaction) as answer:
            if options.typed_into(self.typed).strip().casefold() != _WORD:
                raise UserError(
                    "not-typed", f"type {_WORD} to delete your account; it is unchanged"
                )
            context = context_of(interaction)
            person = await context.person(interaction.user)
            await answer.find_conversation()  # the deletion ends what is stored of it
            threads = await accounts.delete_account(context.store, context.clock, person.id)
            await answer.conclude(
                "Your account is deleted: sources, reports, tokens and settings. Scores stay as "
                "those of a deleted account. Messages in channels and the audit log stay."
            )
            answer.unsent = None  # nothing is stored of a deleted account
            for thread in threads:
                with suppress(discord.HTTPException):
                    await interaction.client.http.delete_channel(int(thread))
