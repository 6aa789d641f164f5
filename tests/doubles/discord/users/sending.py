"""Sending an interaction to the bot, and waiting as a client does."""

import secrets
from dataclasses import dataclass

from tests.doubles.discord.errors import NotAnsweredError
from tests.doubles.discord.kinds import CommandKind, Intent, InteractionKind
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.people import User
from tests.doubles.discord.wire import Json

SLACK_S = 1.0


@dataclass
class Action:
    """A person's action that is to be sent to the bot."""

    kind: InteractionKind
    user: User
    channel: Channel
    data: Json
    name: str = ""
    command: CommandKind = CommandKind.SLASH
    source: Message | None = None
    trigger: Interaction | None = None


def send_interaction(action: Action) -> Interaction:
    """Send the action to the bot as an interaction, without waiting for its answer."""
    channel, world = action.channel, action.channel.world
    token, now = secrets.token_urlsafe(64), world.clock.now()
    number, user = world.snowflake(), action.user
    interaction = Interaction(number, token, action.kind, user, channel, now, action.name)
    interaction.command, interaction.source = action.command, action.source
    interaction.trigger = action.trigger
    world.interactions[interaction.id] = interaction
    payload = _payload(interaction) | {"data": action.data} | _from(user, channel)
    if action.source:
        payload["message"] = action.source.to_api()
    interaction.event = payload
    world.dispatch("INTERACTION_CREATE", payload, intent=Intent(0))
    return interaction


def _payload(interaction: Interaction) -> Json:
    channel, world = interaction.channel, interaction.channel.world
    return {
        "id": str(interaction.id),
        "application_id": str(world.bot.id),
        "type": interaction.kind,
        "token": interaction.token,
        "version": 1,
        "channel_id": str(channel.id),
        "locale": "en-US",
        "entitlements": [],
        "entitlement_sku_ids": [],
        "context": 0 if channel.guild else 1,
        "app_permissions": str(int(world.permissions(world.bot, channel))),
        "authorizing_integration_owners": interaction.owners(),
        "attachment_size_limit": world.limits.file_size,
    }


def _from(user: User, channel: Channel) -> Json:
    """Return the user and the place of an interaction, with the user's permissions there."""
    permissions = {"permissions": str(int(channel.world.permissions(user, channel)))}
    place: Json = {"channel": channel.to_api() | permissions}
    guild = channel.guild
    if guild is None:
        return place | {"user": user.to_api()}
    return place | {
        "guild_id": str(guild.id),
        "guild_locale": "en-US",
        "guild": {"id": str(guild.id), "features": [], "locale": "en-US"},
        "member": guild.members[user.id].to_api() | permissions,
    }


async def wait_for_answer(interaction: Interaction) -> Interaction:
    """Return the interaction once it is answered; NotAnsweredError after the deadline."""
    world = interaction.channel.world
    deadline = world.limits.response_deadline

    def over() -> bool:
        late = world.clock.now() - interaction.created > deadline
        return bool(interaction.answer) or late

    await world.wait_for(over, deadline + SLACK_S)
    if not interaction.answer:
        name = interaction.name or interaction.kind.name.lower()
        message = f"{interaction.user.name}: {name}: no answer within {deadline} s"
        raise NotAnsweredError(message)
    return interaction
