"""What every command receives (the store, the clock, settings), and the groups of commands."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import discord
from discord import app_commands

from bot.discord.snapshot import Snapshot
from bot.domain.accounts import Person
from bot.ports import Clock, Store
from bot.ports.outside import ServiceConnection

FRONT_END = "discord"
"""This front end's name in the store, and the prefix of its accounts' identities."""

Interaction: TypeAlias = discord.Interaction[Any]
"""A command, a click or a form that Discord sends."""


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """How the bot reaches Discord; without an address it uses Discord's own."""

    token: str
    api_base: str | None = None
    gateway_url: str | None = None
    trusted_guilds: frozenset[int] = frozenset()
    """Guilds whose roles count; if empty, see `roles.is_trusted`."""


@dataclass(frozen=True, slots=True)
class DiscordContext:
    """The store and everything else that commands and background work use."""

    store: Store
    clock: Clock
    lease: timedelta = timedelta(seconds=30)
    """How long a process of this front end holds something without a heartbeat."""
    snapshot: Snapshot = field(default_factory=Snapshot)
    connection: ServiceConnection = field(default_factory=lambda: ServiceConnection(FRONT_END))
    """The state of the connection to Discord, for readiness and metrics."""

    @property
    def heartbeat_s(self) -> float:
        """Return the seconds between two renewals of leases."""
        return self.lease.total_seconds() / 3

    async def person(self, user: discord.User | discord.Member) -> Person:
        """Return the account of a Discord user; `People.ensure` says which name it has."""
        name = user.global_name or user.name
        return await self.store.people.ensure(f"{FRONT_END}:{user.id}", name, user.name)


def interaction_key(interaction: Interaction) -> str:
    """Return the interaction's id in the store, also the idempotency key of what it creates."""
    return f"{FRONT_END}:{interaction.id}"


def button_key(interaction: Interaction) -> str:
    """Return the idempotency key of what a button creates once, however often it is pressed."""
    return _button_key(interaction.data or {}) or interaction_key(interaction)


def keys_of_request(interaction: str, data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the idempotency keys under which a stored interaction may have made a submission."""
    button = _button_key(data)
    return (interaction, button) if button else (interaction,)


def _button_key(data: Mapping[str, Any]) -> str:
    return f"{FRONT_END}:{data['custom_id']}" if "custom_id" in data else ""


def request_json(interaction: Interaction) -> str:
    """Return the interaction as JSON without its token, for a process that dispatches it again.

    It has only the ids of person and channel, because their rights may change until then.
    """
    return json.dumps({
        "type": interaction.type.value,
        "data": interaction.data,
        "guild": interaction.guild_id,
        "channel": interaction.channel_id,
        "user": interaction.user.id,
        "app_permissions": interaction.app_permissions.value,
        "attachment_size_limit": interaction.filesize_limit,
        "message": _clicked(interaction.message),
    })  # fmt: skip


def _clicked(message: discord.Message | None) -> Mapping[str, Any] | None:
    """Return what a handler needs of the message whose button was clicked."""
    if message is None:
        return None
    components = [each.to_dict() for each in message.components]
    return {"id": str(message.id), "flags": message.flags.value, "components": components}


def context_of(interaction: Interaction) -> DiscordContext:
    """Return the context of the client that received an interaction."""
    context = getattr(interaction.client, "context", None)
    if not isinstance(context, DiscordContext):
        raise TypeError("the client was made without its context")
    return context


Tree: TypeAlias = app_commands.CommandTree[Any]
"""The commands of a client."""

_DESCRIPTIONS = {
    "leaderboard": "Submit to boards, view and create them",
    "leaderboard submit": "Submit a kernel to a board",
    "leaderboard check": "The check of a task that you submitted",
    "submission": "Your submissions",
    "admin": "Moderation: people, submissions and limits",
    "admin submission": "Anyone's submissions",
    "admin competition": "Sets of boards with one overall ranking",
    "profile": "Your account",
}


ADMIN_NEEDS = discord.Permissions(manage_threads=True)
"""What a person needs in a guild to be offered `/admin`; its use is checked by role."""
_GUILD_ONLY = frozenset({"admin"})
"""Groups that are not offered in direct messages, because they need a guild's roles."""
_IN_GUILDS = app_commands.AppCommandContext(guild=True)


NEEDED_ROLE = "role"
"""The key in a command's extras for the role that it needs; the help hides it from others."""


def add_commands(tree: Tree, name: str, *commands: app_commands.Command[Any, ..., Any]) -> None:
    """Add commands to the group of this name; a space separates a subgroup."""
    parent = _group(tree, name)
    for command in commands:
        parent.add_command(command)


def _group(tree: Tree, name: str) -> app_commands.Group:
    """Return the group of this name, created on first use."""
    parent_name, _, own_name = name.rpartition(" ")
    parent = _group(tree, parent_name) if parent_name else None
    existing = (parent or tree).get_command(own_name)
    if isinstance(existing, app_commands.Group):
        return existing
    group = app_commands.Group(
        name=own_name,
        description=_DESCRIPTIONS[name],
        parent=parent,
        allowed_contexts=_IN_GUILDS if name in _GUILD_ONLY else None,
        default_permissions=ADMIN_NEEDS if name in _GUILD_ONLY else None,
    )
    if parent is None:
        tree.add_command(group)
    return group
