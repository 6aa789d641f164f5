"""The state of the local Discord, the events about it, and waiting for a change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tests.doubles.discord.clock import Clock
from tests.doubles.discord.errors import refusal
from tests.doubles.discord.gateway.sessions import Sessions
from tests.doubles.discord.kinds import ChannelKind, Intent
from tests.doubles.discord.limits import Limits
from tests.doubles.discord.model.access import effective
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import Cdn, File
from tests.doubles.discord.model.guilds import Guild
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.people import Member, Role, User
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.wire import Json

DISCORD_EPOCH_MS = 1420070400000
LOOK_AGAIN_S = 0.25
T = TypeVar("T")


@dataclass
class Sync:
    """One bulk overwrite of the commands of a scope: a guild's id, or 0 for all."""

    scope: int
    names: list[str]


class World:
    """Users, guilds, channels, commands and interactions of one application."""

    def __init__(self, bot_name: str, limits: Limits, clock: Clock) -> None:
        self.limits, self.clock = limits, clock
        self.users: dict[int, User] = {}
        self.guilds: dict[int, Guild] = {}
        self.channels: dict[int, Channel] = {}
        self.commands: dict[tuple[int, int, str], Json] = {}
        self.syncs: list[Sync] = []
        self.interactions: dict[int, Interaction] = {}
        self.cdn = Cdn()
        self.sessions = Sessions()
        self._last_number = 0
        self._change = asyncio.Event()
        self.bot = User(self.snowflake(), bot_name, bot=True)
        self.users[self.bot.id] = self.bot

    def snowflake(self) -> int:
        now = int(self.clock.now() * 1000) - DISCORD_EPOCH_MS
        self._last_number = max(self._last_number + 1, now << 22)
        return self._last_number

    def create_guild(self, name: str, permissions: Permission = Permission.ADMINISTRATOR) -> Guild:
        """A guild with the bot in it, whose managed role grants these permissions."""
        owner = User(self.snowflake(), "owner")
        self.users[owner.id] = owner
        guild = Guild(self, self.snowflake(), name, owner)
        self.guilds[guild.id] = guild
        guild.roles[guild.id] = Role(guild.id, "@everyone", EVERYONE, 0)
        role = Role(self.snowflake(), self.bot.name, permissions, 1, managed=True)
        guild.roles[role.id] = role
        for user, roles in ((owner, set[int]()), (self.bot, {role.id})):
            guild.members[user.id] = Member(user, self.clock.now(), roles)
        self.dispatch("GUILD_CREATE", guild.to_gateway())
        return guild

    def direct(self, user: User) -> Channel:
        """The conversation of the bot with a user."""
        for channel in self.channels.values():
            if channel.kind is ChannelKind.DM and user in channel.recipients:
                return channel
        number, recipients = self.snowflake(), [user, self.bot]
        channel = Channel(self, number, ChannelKind.DM, recipients=recipients)
        self.channels[channel.id] = channel
        return channel

    def store(self, file: File, folder: str) -> File:
        return self.cdn.store(file, folder, self.snowflake(), self.clock.now())

    def commands_in(self, guild: Guild | None) -> list[Json]:
        scopes = {0, guild.id if guild else 0}
        return [command for (scope, _, _), command in self.commands.items() if scope in scopes]

    def permissions(self, user: User, place: Channel | Guild) -> Permission:
        return effective(user, place, self.clock.now())

    def can(self, user: User, place: Channel | Guild, wanted: Permission) -> bool:
        return self.permissions(user, place) & wanted == wanted

    def sees(self, user: User, channel: Channel) -> bool:
        return self.can(user, channel, Permission.VIEW_CHANNEL)

    def require(self, place: Channel | Guild, wanted: Permission) -> None:
        """Raise unless the bot has these permissions: 50001 if it cannot look, else 50013."""
        if isinstance(place, Channel) and not self.sees(self.bot, place):
            raise refusal(50001)
        if not self.can(self.bot, place, wanted):
            raise refusal(50013)

    def dispatch(
        self,
        event: str,
        data: Json,
        channel: Channel | None = None,
        *,
        intent: Intent = Intent.GUILDS,
    ) -> None:
        """Send an event to every session whose intents, access and shard permit it."""
        guild = int(data.get("guild_id") or 0)
        if channel is not None and channel.guild:
            guild = channel.guild.id
        if channel is None or self.sees(self.bot, channel):
            for session in self.sessions.listening(guild, intent):
                session.push(event, data)
        self.changed()

    def send_message_event(self, event: str, message: Message) -> None:
        """Send a message event, without the content to sessions that may not read it."""
        channel, guild = message.channel, message.channel.guild
        intent = Intent.GUILD_MESSAGES if guild else Intent.DIRECT_MESSAGES
        if not message.ephemeral and self.sees(self.bot, channel):
            for session in self.sessions.listening(guild.id if guild else 0, intent):
                hide = not session.intents & Intent.MESSAGE_CONTENT
                data = message.to_api(hide_content=hide)
                if guild:
                    data |= {"guild_id": str(guild.id), **_member_of(message, guild)}
                session.push(event, data)
        self.changed()

    def changed(self) -> None:
        self._change.set()
        self._change = asyncio.Event()

    async def wait_for(self, condition: Callable[[], T], within: float = 5.0) -> T:
        """Wait until a condition holds, checked after each change; return its value."""
        loop = asyncio.get_running_loop()
        end = loop.time() + within
        while not (value := condition()):
            left = end - loop.time()
            if left <= 0:
                raise TimeoutError(f"not so within {within} s")
            change = self._change
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(change.wait(), min(left, LOOK_AGAIN_S))
        return value


def _member_of(message: Message, guild: Guild) -> Json:
    member = guild.members.get(message.author.id)
    if member is None:
        return {}
    return {"member": {key: value for key, value in member.to_api().items() if key != "user"}}
