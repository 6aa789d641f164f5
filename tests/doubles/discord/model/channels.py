"""A channel, a thread or a direct conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.model.people import Role, User
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.wire import Json, iso

if TYPE_CHECKING:
    from tests.doubles.discord.model.guilds import Guild
    from tests.doubles.discord.model.messages import Message
    from tests.doubles.discord.model.world import World


@dataclass
class Overwrite:
    """What a channel changes for one role (0) or one member (1)."""

    kind: int
    allow: Permission = Permission.NONE
    deny: Permission = Permission.NONE

    @staticmethod
    def of(raw: Json) -> Overwrite:
        allow, deny = (Permission(int(raw.get(key) or 0)) for key in ("allow", "deny"))
        return Overwrite(int(raw["type"]), allow, deny)


def overwrites_of(raw: list[Json] | None) -> dict[int, Overwrite]:
    return {int(item["id"]): Overwrite.of(item) for item in raw or ()}


@dataclass
class ThreadState:
    """What a thread has in addition to a channel."""

    owner: int
    archived: bool = False
    locked: bool = False
    invitable: bool = True
    auto_archive: int = 1440
    created: float = 0.0
    active_at: float = 0.0
    """When it last got a message or was unarchived."""
    tags: list[str] = field(default_factory=list)
    members: dict[int, float] = field(default_factory=dict)
    """The ids of its members, and when they joined."""


@dataclass(eq=False, repr=False)
class Channel:
    """Where messages are; `parent` is a category, or the channel of a thread."""

    world: World
    id: int
    kind: ChannelKind
    name: str = ""
    guild: Guild | None = None
    parent: Channel | None = None
    topic: str | None = None
    position: int = 0
    overwrites: dict[int, Overwrite] = field(default_factory=dict)
    recipients: list[User] = field(default_factory=list)
    tags: list[Json] = field(default_factory=list)
    all_messages: dict[int, Message] = field(default_factory=dict)
    deleted: bool = False
    state: ThreadState | None = None

    @property
    def is_thread(self) -> bool:
        return self.state is not None

    @property
    def private(self) -> bool:
        return self.kind is ChannelKind.PRIVATE_THREAD

    @property
    def mention(self) -> str:
        return f"<#{self.id}>"

    @property
    def archived(self) -> bool:
        return self.state is not None and self.state.archived

    @property
    def members(self) -> dict[int, float]:
        """The members of a thread."""
        return self.state.members if self.state else {}

    @property
    def threads(self) -> list[Channel]:
        everywhere = self.world.channels.values()
        return [thread for thread in everywhere if thread.is_thread and thread.parent is self]

    @property
    def messages(self) -> list[Message]:
        """What everyone with access sees, oldest first: no ephemeral messages."""
        return [message for message in self.all_messages.values() if not message.ephemeral]

    def deny(self, target: Role | User, permissions: Permission) -> Channel:
        entry = self._entry(target)
        entry.deny, entry.allow = entry.deny | permissions, entry.allow & ~permissions
        return self._changed()

    def allow(self, target: Role | User, permissions: Permission) -> Channel:
        entry = self._entry(target)
        entry.deny, entry.allow = entry.deny & ~permissions, entry.allow | permissions
        return self._changed()

    def _entry(self, target: Role | User) -> Overwrite:
        return self.overwrites.setdefault(target.id, Overwrite(int(isinstance(target, User))))

    def _changed(self) -> Channel:
        self.world.dispatch("CHANNEL_UPDATE", self.to_api(), self)
        return self

    def to_api(self) -> Json:
        data: Json = {
            "id": str(self.id),
            "type": self.kind,
            "flags": 0,
            "last_message_id": str(max(self.all_messages)) if self.all_messages else None,
        }
        if self.guild is None:
            others = [user.to_api() for user in self.recipients if user is not self.world.bot]
            return data | {"recipients": others}
        data |= {
            "guild_id": str(self.guild.id),
            "name": self.name,
            "rate_limit_per_user": 0,
            "parent_id": str(self.parent.id) if self.parent else None,
        }
        return data | (self._as_thread(self.state) if self.state else self._as_channel())

    def _as_thread(self, state: ThreadState) -> Json:
        count, bot = len(self.messages), self.world.bot.id
        metadata: Json = {
            "archived": state.archived,
            "locked": state.locked,
            "auto_archive_duration": state.auto_archive,
            "archive_timestamp": iso(state.created),
            "create_timestamp": iso(state.created),
        }
        return {
            "owner_id": str(state.owner),
            "message_count": count,
            "total_message_sent": count,
            "member_count": len(state.members),
            "applied_tags": state.tags,
            "thread_metadata": metadata | ({"invitable": state.invitable} if self.private else {}),
        } | ({"member": self.member_to_api(bot)} if bot in state.members else {})

    def _as_channel(self) -> Json:
        data: Json = {
            "position": self.position,
            "nsfw": False,
            "topic": self.topic,
            "permission_overwrites": [
                {
                    "id": str(target),
                    "type": entry.kind,
                    "allow": str(int(entry.allow)),
                    "deny": str(int(entry.deny)),
                }
                for target, entry in self.overwrites.items()
            ],
        }
        forum: Json = {
            "available_tags": self.tags,
            "default_reaction_emoji": None,
            "default_sort_order": None,
            "default_forum_layout": 0,
            "default_thread_rate_limit_per_user": 0,
        }
        return data | (forum if self.kind is ChannelKind.FORUM else {})

    def member_to_api(self, user: int) -> Json:
        return {
            "id": str(self.id),
            "user_id": str(user),
            "join_timestamp": iso(self.members[user]),
            "flags": 1,
        }
