"""What every command is handed: the store, the time, and what this door was told."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import discord

from bot.domain.accounts import Person
from bot.domain.prices import Prices
from bot.ports import Clock, Store
from bot.ports.outside import ServiceConnection
from runners.contract.runner import Runner

DOOR = "discord"


def _own_line() -> ServiceConnection:
    return ServiceConnection(DOOR)


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """How the bot reaches Discord; no address means Discord's own."""

    token: str
    api_base: str | None = None
    gateway_url: str | None = None
    trusted_guilds: frozenset[int] = frozenset()
    """Guilds whose roles count; none: see `roles.is_trusted`."""
    prices: Prices = field(default_factory=dict)
    """What a second of each GPU type costs."""


@dataclass(frozen=True, slots=True)
class DiscordContext:
    """Podium, as the commands of this door see it."""

    store: Store
    clock: Clock
    runners: Sequence[Runner] = ()
    """Where the solutions of new tasks are tried."""
    lease: timedelta = timedelta(seconds=30)
    """How long what a silent process of this door holds stays its own."""
    line: ServiceConnection = field(default_factory=_own_line)
    """How the connection to Discord is, for others to see."""
    prices: Prices = field(default_factory=dict)
    """What a second of each GPU type costs."""

    @property
    def beat_s(self) -> float:
        """Seconds between two prolongations of what is held."""
        return self.lease.total_seconds() / 3

    async def person(self, user: discord.User | discord.Member) -> Person:
        """The account of a Discord user, under the name by which others know them."""
        return await self.store.people.ensure(f"{DOOR}:{user.id}", user.global_name or user.name)


def context_of(interaction: discord.Interaction[Any]) -> DiscordContext:
    """The door through which an interaction came."""
    door = getattr(interaction.client, "door", None)
    if not isinstance(door, DiscordContext):
        raise TypeError("the client was made without its door")
    return door
