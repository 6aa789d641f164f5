"""The registry of REST routes, and the request that each handler receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.discord.errors import invalid, refusal
from tests.doubles.discord.gateway.connection import Admission
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.people import Member, Role
from tests.doubles.discord.model.world import World
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.wire import Json


@dataclass
class Call:
    """One request, and access to the objects that its path names."""

    world: World
    admission: Admission
    path: dict[str, str]
    query: dict[str, str]
    body: Any = None
    files: list[File] = field(default_factory=list)

    def id(self, name: str) -> int:
        raw = self.path[name]
        if not raw.isdigit():
            raise invalid(name, "NUMBER_TYPE_COERCE", f'Value "{raw}" is not snowflake.')
        return int(raw)

    def number(self, name: str, default: int) -> int:
        return int(self.query.get(name) or default)

    def channel(self) -> Channel:
        channel = self.world.channels.get(self.id("channel_id"))
        if channel is None or channel.deleted:
            raise refusal(10003)
        if not self.world.sees(self.world.bot, channel):
            raise refusal(50001)
        return channel

    def thread(self) -> Channel:
        channel = self.channel()
        if not channel.is_thread:
            raise refusal(50024)
        return channel

    def guild(self) -> Guild:
        guild = self.world.guilds.get(self.id("guild_id"))
        if guild is None or self.world.bot.id not in guild.members:
            raise refusal(10004)
        return guild

    def message(self) -> Message:
        message = self.channel().all_messages.get(self.id("message_id"))
        if message is None or message.ephemeral:
            raise refusal(10008)
        return message

    def member(self) -> Member:
        me = self.path["user_id"] == "@me"
        member = self.guild().members.get(self.world.bot.id if me else self.id("user_id"))
        if member is None:
            raise refusal(10007)
        return member

    def manageable_role(self, number: int) -> Role:
        """Return a role that the bot may manage: one below its own."""
        guild = self.guild()
        role = guild.roles.get(number)
        if role is None:
            raise refusal(10011)
        self.world.require(guild, Permission.MANAGE_ROLES)
        if role.managed or role is guild.everyone or role.position >= guild.rank(guild.me):
            raise refusal(50013)
        return role


Answer = Json | list[Json] | None
Handler = Callable[[Call], Answer]


@dataclass(frozen=True)
class Endpoint:
    """A method and a path, and the handler that answers."""

    method: str
    path: str
    handler: Handler
    status: int

    @property
    def literal_first(self) -> list[bool]:
        """The order in which paths are tried: `/users/@me` before `/users/{user_id}`."""
        return [segment.startswith("{") for segment in self.path.split("/")]


ENDPOINTS: list[Endpoint] = []


def route(method: str, *paths: str, status: int = 200) -> Callable[[Handler], Handler]:
    """Serve these paths; an answer of None is sent as 204."""

    def add(handler: Handler) -> Handler:
        ENDPOINTS.extend(Endpoint(method, path, handler, status) for path in paths)
        return handler

    return add
