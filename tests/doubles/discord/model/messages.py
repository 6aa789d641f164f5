"""A message: what was sent, how it was edited, and who was notified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.discord.kinds import SELECTS, ComponentKind, Flag, MessageKind
from tests.doubles.discord.model.components import Component, find_component, walk
from tests.doubles.discord.wire import Json, iso

if TYPE_CHECKING:
    from tests.doubles.discord.model.channels import Channel
    from tests.doubles.discord.model.files import File
    from tests.doubles.discord.model.interactions import Interaction
    from tests.doubles.discord.model.people import User

EVERYONE = "everyone"


@dataclass(eq=False, repr=False)
class Message:
    """One message of a channel, thread or direct conversation."""

    id: int
    channel: Channel
    author: User
    content: str = ""
    embeds: list[Json] = field(default_factory=list)
    components: list[Json] = field(default_factory=list)
    files: list[File] = field(default_factory=list)
    flags: int = 0
    kind: MessageKind = MessageKind.DEFAULT
    created: float = 0.0
    edited: float | None = None
    reference: Message | None = None
    interaction: Interaction | None = None
    ephemeral_to: int | None = None
    reactions: dict[str, list[int]] = field(default_factory=dict)
    pinned: bool = False
    deleted: bool = False
    nonce: str | int | None = None
    mentions: list[int] = field(default_factory=list)
    pings: set[int | str] = field(default_factory=set)
    """Ids of the users and roles that were notified, and "everyone"."""
    edits: list[str] = field(default_factory=list)
    """Every content that this message ever had."""

    @property
    def ephemeral(self) -> bool:
        return self.ephemeral_to is not None

    @property
    def loading(self) -> bool:
        """Whether it still says "thinking..."."""
        return bool(self.flags & Flag.LOADING)

    @property
    def silent(self) -> bool:
        """Whether it was sent without push notifications."""
        return bool(self.flags & Flag.SUPPRESS_NOTIFICATIONS)

    @property
    def thread(self) -> Channel | None:
        return self.channel.world.channels.get(self.id)

    @property
    def buttons(self) -> list[Component]:
        return self._parts(ComponentKind.BUTTON)

    @property
    def selects(self) -> list[Component]:
        return self._parts(*SELECTS)

    def _parts(self, *kinds: ComponentKind) -> list[Component]:
        return [Component(self, part) for part in walk(self.components) if part["type"] in kinds]

    def button(self, label: str | None = None, custom_id: str | None = None) -> Component:
        return find_component(self.buttons, "label", label, custom_id)

    def select(self, placeholder: str | None = None, custom_id: str | None = None) -> Component:
        return find_component(self.selects, "placeholder", placeholder, custom_id)

    @property
    def pinging_text(self) -> str:
        """The text whose mentions notify: embeds never do."""
        displays = [
            part["content"]
            for part in walk(self.components)
            if part["type"] == ComponentKind.TEXT_DISPLAY
        ]
        return "\n".join([self.content, *displays])

    @property
    def text(self) -> str:
        """Everything that a reader sees: content, text displays and embeds."""
        parts: list[str | None] = [self.pinging_text]
        for embed in self.embeds:
            parts += [embed.get("title"), embed.get("description")]
            parts += [(embed.get("author") or {}).get("name")]
            parts += [(embed.get("footer") or {}).get("text")]
            parts += [x for item in embed.get("fields", ()) for x in (item["name"], item["value"])]
        return "\n".join(part for part in parts if part)

    def file(self, filename: str) -> File:
        return next(file for file in self.files if file.filename == filename)

    def to_api(self, *, hide_content: bool = False) -> Json:
        world, guild = self.channel.world, self.channel.guild
        bot = world.bot.id
        data: Json = {
            "id": str(self.id),
            "channel_id": str(self.channel.id),
            "author": self.author.to_api(),
            "type": self.kind,
            "content": self.content,
            "embeds": self.embeds,
            "components": self.components,
            "flags": self.flags,
            "attachments": [file.to_api() for file in self.files],
            "timestamp": iso(self.created),
            "tts": False,
            "edited_timestamp": iso(self.edited),
            "mention_everyone": EVERYONE in self.pings,
            "pinned": self.pinned,
            "mentions": [world.users[user].to_api() for user in self.mentions],
            "mention_roles": [str(x) for x in self.pings if guild and x in guild.roles],
            "reactions": [_reaction(emoji, by, bot) for emoji, by in self.reactions.items()],
        }
        if hide_content and guild and bot not in (self.author.id, *self.mentions):
            data |= {"content": "", "embeds": [], "components": [], "attachments": []}
        return data | self._relations()

    def _relations(self) -> Json:
        data: Json = {}
        if self.nonce is not None:
            data["nonce"] = self.nonce
        if self.reference:
            data["message_reference"] = _pointer(self.reference)
        if self.interaction:
            application = str(self.channel.world.bot.id)
            data |= {"webhook_id": application, "application_id": application}
            data["interaction_metadata"] = self.interaction.metadata()
        if self.thread:
            data["thread"] = self.thread.to_api()
        return data


def _pointer(message: Message) -> Json:
    channel = message.channel
    pointer: Json = {"type": 0, "message_id": str(message.id), "channel_id": str(channel.id)}
    return pointer | ({"guild_id": str(channel.guild.id)} if channel.guild else {})


def _reaction(emoji: str, users: list[int], bot: int) -> Json:
    return {
        "count": len(users),
        "me": bot in users,
        "me_burst": False,
        "burst_colors": [],
        "burst_count": 0,
        "count_details": {"burst": 0, "normal": len(users)},
        "emoji": {"id": None, "name": emoji},
    }
