"""Creating, changing and deleting channels, and their permission overwrites."""

import re

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import CHANNEL
from tests.doubles.discord.model.activity import unarchive
from tests.doubles.discord.model.channels import Channel, Overwrite, overwrites_of
from tests.doubles.discord.model.world import World
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.calls import Answer, Call, route
from tests.doubles.discord.wire import Json

NAME, TOPIC, FORUM_TOPIC = 100, 1024, 4096
OF_GUILD = "/guilds/{guild_id}/channels"


def _tags(world: World, raw: list[Json] | None) -> list[Json]:
    empty = {"moderated": False, "emoji_id": None, "emoji_name": None}
    return [empty | tag | {"id": str(tag.get("id") or world.snowflake())} for tag in raw or ()]


@route("GET", CHANNEL)
def get_channel(call: Call) -> Answer:
    return call.channel().to_api()


@route("GET", OF_GUILD)
def list_channels(call: Call) -> Answer:
    return [channel.to_api() for channel in call.guild().channels if not channel.is_thread]


@route("POST", OF_GUILD, status=201)
def create_channel(call: Call) -> Answer:
    guild, body, form = call.guild(), call.body, Form()
    call.world.require(guild, Permission.MANAGE_CHANNELS)
    form.required("name", body.get("name"), 1, NAME)
    form.done()
    if len([x for x in guild.channels if not x.is_thread]) >= call.world.limits.channels:
        raise refusal(30013)
    kind = ChannelKind(body.get("type", ChannelKind.TEXT))
    plain = kind is ChannelKind.CATEGORY
    name = body["name"] if plain else re.sub(r"\s+", "-", body["name"].lower())
    parent = call.world.channels.get(int(body.get("parent_id") or 0))
    channel = guild.create_channel(name, kind, parent, body.get("topic"))
    channel.overwrites = overwrites_of(body.get("permission_overwrites"))
    channel.tags = _tags(call.world, body.get("available_tags"))
    return channel.to_api()


@route("PATCH", CHANNEL)
def edit_channel(call: Call) -> Answer:
    channel, form = call.channel(), Form()
    topic = FORUM_TOPIC if channel.kind is ChannelKind.FORUM else TOPIC
    form.between("name", call.body.get("name"), 1, call.world.limits.thread_name)
    form.at_most("topic", call.body.get("topic"), topic)
    form.done()
    if channel.is_thread:
        _edit_thread(call, channel)
    else:
        _edit_plain(call, channel)
    channel.name = call.body.get("name", channel.name)
    event = "THREAD_UPDATE" if channel.is_thread else "CHANNEL_UPDATE"
    call.world.dispatch(event, channel.to_api(), channel)
    return channel.to_api()


def _edit_thread(call: Call, thread: Channel) -> None:
    state, body = thread.state, call.body
    assert state is not None
    opens = body.get("archived", True) is False
    if state.archived and set(body) - {"archived", "locked"} and not opens:
        raise refusal(50083)
    locks = "locked" in body and body["locked"] != state.locked
    if locks or state.owner != call.world.bot.id:
        call.world.require(thread, Permission.MANAGE_THREADS)
    if opens:
        unarchive(thread)
    state.archived = body.get("archived", state.archived)
    state.locked = body.get("locked", state.locked)
    state.auto_archive = body.get("auto_archive_duration", state.auto_archive)
    state.tags = [str(tag) for tag in body.get("applied_tags", state.tags)]


def _edit_plain(call: Call, channel: Channel) -> None:
    body = call.body
    call.world.require(channel, Permission.MANAGE_CHANNELS)
    if "permission_overwrites" in body:
        channel.overwrites = overwrites_of(body["permission_overwrites"])
    if "available_tags" in body:
        channel.tags = _tags(call.world, body["available_tags"])
    if "parent_id" in body:
        channel.parent = call.world.channels.get(int(body["parent_id"] or 0))
    channel.topic = body.get("topic", channel.topic)


@route("DELETE", CHANNEL)
def delete_channel(call: Call) -> Answer:
    channel = call.channel()
    inside, outside = Permission.MANAGE_THREADS, Permission.MANAGE_CHANNELS
    call.world.require(channel, inside if channel.is_thread else outside)
    data = channel.to_api()
    event = "THREAD_DELETE" if channel.is_thread else "CHANNEL_DELETE"
    call.world.dispatch(event, data, channel)
    channel.deleted = True
    for gone in [channel, *channel.threads]:
        call.world.channels.pop(gone.id)
    return data


@route("PUT", f"{CHANNEL}/permissions/{{target_id}}")
def put_overwrite(call: Call) -> Answer:
    channel = call.channel()
    call.world.require(channel, Permission.MANAGE_ROLES)
    channel.overwrites[call.id("target_id")] = Overwrite.of(call.body)
    call.world.dispatch("CHANNEL_UPDATE", channel.to_api(), channel)
    return None


@route("DELETE", f"{CHANNEL}/permissions/{{target_id}}")
def delete_overwrite(call: Call) -> Answer:
    channel = call.channel()
    call.world.require(channel, Permission.MANAGE_ROLES)
    channel.overwrites.pop(call.id("target_id"), None)
    call.world.dispatch("CHANNEL_UPDATE", channel.to_api(), channel)
    return None
