"""A fake interaction, without a Discord server, that records what the bot sends for it."""

from unittest.mock import AsyncMock, Mock

import discord

from bot.discord.context import DiscordContext

TOKEN = "a-token-of-discord"  # noqa: S105


def command_used(context: DiscordContext, number: int = 1) -> Mock:
    """Return a command that a person has just used in a guild."""
    found = Mock(spec=discord.Interaction, id=number, token=TOKEN, guild_id=5, channel_id=6)
    found.type = discord.InteractionType.application_command
    found.data = {"name": "leaderboard", "options": []}
    found.extras, found.message = {}, None
    found.client.context = context
    found.client.is_closed.return_value = False
    found.user.id = 7
    found.user.send = AsyncMock()
    found.app_permissions = discord.Permissions.none()
    found.filesize_limit = 1
    found.created_at = context.clock.now()
    found.response.defer = AsyncMock()
    found.response.send_message = AsyncMock()
    found.edit_original_response = AsyncMock()
    found.followup.send = AsyncMock()
    return found


def answer_texts(interaction: Mock) -> list[str]:
    """Return the texts that filled the answer, in order."""
    return [each.kwargs["content"] for each in interaction.edit_original_response.mock_calls]
