"""Users, roles, and the membership of users in guilds."""

from dataclasses import dataclass, field

from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.wire import Json, iso


@dataclass(eq=False)
class User:
    """An account; a person that tests drive is a `Person`."""

    id: int
    name: str
    bot: bool = False
    dms_open: bool = True
    shown: str = ""
    """The display name that they chose; without one, their name with capitals."""

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"

    def to_api(self) -> Json:
        return {
            "id": str(self.id),
            "username": self.name,
            "discriminator": "0",
            "global_name": None if self.bot else self.shown or self.name.title(),
            "avatar": None,
            "bot": self.bot,
            "public_flags": 0,
            "flags": 0,
            "system": False,
            "banner": None,
            "accent_color": None,
            "primary_guild": None,
            "avatar_decoration_data": None,
            "collectibles": None,
        }


@dataclass(eq=False)
class Role:
    """A named set of permissions; its position decides who may manage it."""

    id: int
    name: str
    permissions: Permission
    position: int
    color: int = 0
    hoist: bool = False
    mentionable: bool = False
    managed: bool = False

    @property
    def mention(self) -> str:
        return f"<@&{self.id}>"

    def to_api(self) -> Json:
        colors = {"primary_color": self.color, "secondary_color": None, "tertiary_color": None}
        return {
            "id": str(self.id),
            "name": self.name,
            "permissions": str(int(self.permissions)),
            "position": self.position,
            "color": self.color,
            "colors": colors,
            "hoist": self.hoist,
            "mentionable": self.mentionable,
            "managed": self.managed,
            "icon": None,
            "unicode_emoji": None,
            "flags": 0,
            "tags": {},
        }


@dataclass(eq=False)
class Member:
    """A user in one guild."""

    user: User
    joined: float
    roles: set[int] = field(default_factory=set)
    nick: str | None = None
    timeout_until: float | None = None

    def to_api(self) -> Json:
        return {
            "user": self.user.to_api(),
            "nick": self.nick,
            "roles": [str(role) for role in sorted(self.roles)],
            "avatar": None,
            "banner": None,
            "joined_at": iso(self.joined),
            "premium_since": None,
            "deaf": False,
            "mute": False,
            "flags": 0,
            "pending": False,
            "communication_disabled_until": iso(self.timeout_until),
        }

    def to_resolved(self, permissions: Permission) -> Json:
        """Return the member as an interaction's resolved data has it, next to its user."""
        api = self.to_api()
        for absent in ("user", "deaf", "mute"):
            del api[absent]
        return api | {"permissions": str(int(permissions))}
