"""Sending, editing and deleting messages, reactions, and thread members."""

import json
from dataclasses import dataclass, field

from tests.doubles.discord.kinds import Flag, Intent, MessageKind
from tests.doubles.discord.model.activity import require_free_thread, unarchive
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.people import User
from tests.doubles.discord.rules.mentions import mentioned, notified
from tests.doubles.discord.rules.messages import check_message
from tests.doubles.discord.wire import Json

NONCE_S = 300.0
"""Discord says "the past few minutes"."""
_KEPT = Flag.EPHEMERAL | Flag.COMPONENTS_V2 | Flag.HAS_THREAD | Flag.SUPPRESS_NOTIFICATIONS
_OURS = Flag.EPHEMERAL | Flag.LOADING


@dataclass
class Draft:
    """A message that is not sent yet."""

    payload: Json
    files: list[File] = field(default_factory=list)
    interaction: Interaction | None = None
    reference: Message | None = None
    kind: MessageKind = MessageKind.DEFAULT
    ephemeral: bool = False
    loading: bool = False
    """Whether it only shows "thinking..."."""


def post(author: User, channel: Channel, draft: Draft) -> Message:
    """Send a message; ApiError if Discord would refuse it."""
    world = channel.world
    if not draft.loading and draft.kind is not MessageKind.THREAD_CREATED:
        check_message(world.limits, draft.payload, draft.files)
    if twin := _same_nonce(author, channel, draft.payload):
        return twin
    if channel.guild is not None and channel.archived:
        require_free_thread(channel.guild)
    message = Message(world.snowflake(), channel, author, created=world.clock.now())
    plain = draft.kind is MessageKind.DEFAULT
    message.kind = MessageKind.REPLY if draft.reference and plain else draft.kind
    message.interaction, message.reference = draft.interaction, draft.reference
    message.nonce = draft.payload.get("nonce")
    if draft.interaction and draft.ephemeral:
        message.ephemeral_to = draft.interaction.user.id
    _apply(message, draft.payload, draft.files)
    _notify(message, draft.payload)
    message.flags = (draft.payload.get("flags") or 0) & ~_OURS
    message.flags |= Flag.EPHEMERAL * draft.ephemeral | Flag.LOADING * draft.loading
    channel.all_messages[message.id] = message
    _join_and_reopen(channel, author)
    _add_named(message, message.pings)
    world.send_message_event("MESSAGE_CREATE", message)
    return message


def _same_nonce(author: User, channel: Channel, payload: Json) -> Message | None:
    """With `enforce_nonce`, return the author's recent message with the same nonce, if any."""
    if not payload.get("enforce_nonce") or payload.get("nonce") is None:
        return None
    since = channel.world.clock.now() - NONCE_S
    for message in channel.all_messages.values():
        same = message.author is author and message.nonce == payload["nonce"]
        if same and message.created > since:
            return message
    return None


def _join_and_reopen(channel: Channel, author: User) -> None:
    """Add the author of a message to its thread, and reopen an archived thread."""
    if channel.state is None:
        return
    was_archived = channel.state.archived
    unarchive(channel)
    if was_archived:
        channel.world.dispatch("THREAD_UPDATE", channel.to_api(), channel)
    if author.id not in channel.state.members:
        set_thread_member(channel, author, inside=True)


def _add_named(message: Message, named: set[int | str]) -> None:
    """Add the users that a message in a thread mentions to the thread.

    An edit adds them too, without a notification. Unless `allowed_mentions` forbids it, a
    stranger's text can thus add people to a private thread.
    """
    channel, world = message.channel, message.channel.world
    if not channel.is_thread or channel.guild is None or channel.parent is None:
        return
    for number in named:
        member = channel.guild.members.get(number) if isinstance(number, int) else None
        if member and number not in channel.members and world.sees(member.user, channel.parent):
            set_thread_member(channel, member.user, inside=True)


def edit(message: Message, payload: Json, files: list[File]) -> Message:
    """Edit a message; the edit notifies people only if the message was still loading."""
    world, first = message.channel.world, message.loading
    check_message(world.limits, payload, files, None if first else message)
    message.flags &= ~Flag.LOADING
    _apply(message, payload, files)
    if first:
        _notify(message, payload)
    if not message.ephemeral:
        _add_named(message, notified(message, payload.get("allowed_mentions")))
    message.edited = world.clock.now()
    world.send_message_event("MESSAGE_UPDATE", message)
    return message


def _apply(message: Message, payload: Json, files: list[File]) -> None:
    if "content" in payload:
        message.content = (payload["content"] or "").strip()
    if payload.get("components") is not None:
        message.components = payload["components"]
    if "flags" in payload:
        message.flags = message.flags & _KEPT | (payload["flags"] or 0) & ~_OURS
    _apply_files(message, payload.get("attachments"), files)
    if "embeds" in payload:
        message.embeds = json.loads(json.dumps(payload["embeds"] or []))
    for embed in message.embeds:
        _link_images(message, embed)
    message.mentions = mentioned(message, payload.get("allowed_mentions"))
    message.edits.append(message.content)


def _notify(message: Message, payload: Json) -> None:
    """Note who is notified: for an ephemeral message, only its reader."""
    message.pings = notified(message, payload.get("allowed_mentions"))
    if (payload.get("flags") or 0) & Flag.SUPPRESS_NOTIFICATIONS:
        message.pings = set()
    if message.ephemeral_to is not None:
        message.pings &= {message.ephemeral_to}


def _apply_files(message: Message, described: list[Json] | None, files: list[File]) -> None:
    if described is not None:
        by_id = {int(item["id"]): item for item in described}
        message.files = [file for file in message.files if file.id in by_id]
        for i, file in enumerate(files):
            file.description = by_id.get(i, {}).get("description")
    folder = f"attachments/{message.channel.id}"
    world = message.channel.world
    message.files = message.files + [world.store(file, folder) for file in files]


def _link_images(message: Message, embed: Json) -> None:
    embed.setdefault("type", "rich")
    for key in ("image", "thumbnail"):
        url = (embed.get(key) or {}).get("url") or ""
        for file in message.files:
            if url == f"attachment://{file.filename}":
                embed[key]["url"] = file.url


def delete(message: Message) -> None:
    channel, guild = message.channel, message.channel.guild
    channel.all_messages.pop(message.id, None)
    message.deleted = True
    data = {"id": str(message.id), "channel_id": str(channel.id)}
    if guild:
        data["guild_id"] = str(guild.id)
    if not message.ephemeral:
        intent = Intent.GUILD_MESSAGES if guild else Intent.DIRECT_MESSAGES
        channel.world.dispatch("MESSAGE_DELETE", data, channel, intent=intent)
    channel.world.changed()


def react(user: User, message: Message, emoji: str) -> None:
    channel, guild = message.channel, message.channel.guild
    users = message.reactions.setdefault(emoji, [])
    if user.id in users:
        return
    users.append(user.id)
    data: Json = {
        "user_id": str(user.id),
        "channel_id": str(channel.id),
        "message_id": str(message.id),
        "emoji": {"id": None, "name": emoji},
        "burst": False,
        "type": 0,
        "message_author_id": str(message.author.id),
    }
    if guild:
        data |= {"guild_id": str(guild.id), "member": guild.members[user.id].to_api()}
    intent = Intent.GUILD_MESSAGE_REACTIONS
    channel.world.dispatch("MESSAGE_REACTION_ADD", data, channel, intent=intent)


def set_thread_member(thread: Channel, user: User, *, inside: bool) -> None:
    """Add a user to a thread, or remove them from it."""
    world, guild, state = thread.world, thread.guild, thread.state
    assert guild is not None
    assert state is not None
    data: Json = {"id": str(thread.id), "guild_id": str(guild.id)}
    if inside:
        state.members[user.id] = world.clock.now()
        member = {"member": guild.members[user.id].to_api(), "presence": None}
        data["added_members"] = [thread.member_to_api(user.id) | member]
    else:
        state.members.pop(user.id, None)
        data["removed_member_ids"] = [str(user.id)]
    if inside and user is world.bot:
        world.dispatch("THREAD_CREATE", thread.to_api(), thread)
    data["member_count"] = len(state.members)
    world.dispatch("THREAD_MEMBERS_UPDATE", data, thread)
