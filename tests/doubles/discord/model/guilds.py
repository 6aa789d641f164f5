"""A guild: its roles, members and channels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.discord.kinds import ChannelKind, Intent
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.people import Member, Role, User
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.wire import Json, iso

if TYPE_CHECKING:
    from tests.doubles.discord.model.world import World

_FIXED: Json = {
    "icon": None,
    "splash": None,
    "discovery_splash": None,
    "banner": None,
    "description": None,
    "region": "us",
    "afk_channel_id": None,
    "afk_timeout": 300,
    "verification_level": 0,
    "default_message_notifications": 1,
    "explicit_content_filter": 0,
    "emojis": [],
    "stickers": [],
    "features": [],
    "mfa_level": 0,
    "application_id": None,
    "system_channel_id": None,
    "system_channel_flags": 0,
    "rules_channel_id": None,
    "public_updates_channel_id": None,
    "max_members": 250000,
    "premium_tier": 0,
    "premium_subscription_count": 0,
    "preferred_locale": "en-US",
    "nsfw_level": 0,
    "premium_progress_bar_enabled": False,
    "vanity_url_code": None,
    "home_header": None,
    "widget_enabled": False,
    "widget_channel_id": None,
    "max_presences": None,
    "max_video_channel_users": 25,
    "max_stage_video_channel_users": 50,
    "safety_alerts_channel_id": None,
    "nsfw": False,
    "incidents_data": None,
}
_ABSENT: Json = {
    "presences": [],
    "voice_states": [],
    "stage_instances": [],
    "guild_scheduled_events": [],
    "soundboard_sounds": [],
}


@dataclass(eq=False, repr=False)
class Guild:
    """What people call a server."""

    world: World
    id: int
    name: str
    owner: User
    roles: dict[int, Role] = field(default_factory=dict)
    members: dict[int, Member] = field(default_factory=dict)

    @property
    def everyone(self) -> Role:
        return self.roles[self.id]

    @property
    def me(self) -> Member:
        """The bot's membership."""
        return self.members[self.world.bot.id]

    @property
    def channels(self) -> list[Channel]:
        return [channel for channel in self.world.channels.values() if channel.guild is self]

    def channel(self, name: str) -> Channel:
        """The channel or thread of this name."""
        return next(channel for channel in self.channels if channel.name == name)

    def role(self, name: str) -> Role:
        return next(role for role in self.roles.values() if role.name == name)

    def create_channel(
        self,
        name: str,
        kind: ChannelKind = ChannelKind.TEXT,
        parent: Channel | None = None,
        topic: str | None = None,
    ) -> Channel:
        number, position = self.world.snowflake(), len(self.channels)
        channel = Channel(self.world, number, kind, name, self, parent, topic, position)
        self.world.channels[channel.id] = channel
        self.world.dispatch("CHANNEL_CREATE", channel.to_api(), channel)
        return channel

    def create_role(self, name: str, permissions: Permission = Permission.NONE) -> Role:
        """Add a role directly above @everyone."""
        role = Role(self.world.snowflake(), name, permissions, 1)
        for other in self.roles.values():
            other.position += other.id != self.id
        self.roles[role.id] = role
        data = {"guild_id": str(self.id), "role": role.to_api()}
        self.world.dispatch("GUILD_ROLE_CREATE", data)
        return role

    def join(self, user: User, *roles: Role) -> Member:
        member = Member(user, self.world.clock.now(), {role.id for role in roles})
        self.members[user.id] = member
        data = member.to_api() | {"guild_id": str(self.id)}
        self.world.dispatch("GUILD_MEMBER_ADD", data, intent=Intent.GUILD_MEMBERS)
        return member

    def leave(self, user: User) -> None:
        """Remove a user; if it is the bot, it receives no further events of the guild."""
        if user is self.world.bot:
            self.world.dispatch("GUILD_DELETE", {"id": str(self.id)})
        del self.members[user.id]
        data = {"guild_id": str(self.id), "user": user.to_api()}
        self.world.dispatch("GUILD_MEMBER_REMOVE", data, intent=Intent.GUILD_MEMBERS)

    def member_changed(self, member: Member) -> None:
        data = member.to_api() | {"guild_id": str(self.id)}
        intent = Intent(0) if member.user is self.world.bot else Intent.GUILD_MEMBERS
        self.world.dispatch("GUILD_MEMBER_UPDATE", data, intent=intent)

    def rank(self, member: Member) -> int:
        """The position of a member's highest role."""
        return max((self.roles[role].position for role in member.roles), default=0)

    def to_api(self) -> Json:
        return _FIXED | {
            "id": str(self.id),
            "name": self.name,
            "owner_id": str(self.owner.id),
            "roles": [role.to_api() for role in self.roles.values()],
        }

    def to_gateway(self) -> Json:
        """Return the data of GUILD_CREATE: only what the bot may see."""
        world = self.world
        visible = [channel for channel in self.channels if world.sees(world.bot, channel)]
        threads = [thread for thread in visible if thread.is_thread and not thread.archived]
        return self.to_api() | {
            "joined_at": iso(self.me.joined),
            "large": False,
            "unavailable": False,
            "member_count": len(self.members),
            "members": [self.me.to_api()],
            "channels": [channel.to_api() for channel in visible if not channel.is_thread],
            "threads": [thread.to_api() for thread in threads],
            **_ABSENT,
        }
