"""Messages of channels, threads and direct conversations, with their reactions and pins."""

from urllib.parse import unquote

from tests.doubles.discord.errors import Form, invalid, refusal
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import MESSAGE, MESSAGES
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.posting import Draft, delete, edit, post, react
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.calls import Answer, Call, route
from tests.doubles.discord.wire import iso

PAGE = 100
PIN = (f"{MESSAGES}/pins/{{message_id}}", "/channels/{channel_id}/pins/{message_id}")
REACTION = f"{MESSAGE}/reactions/{{emoji}}/@me"


@route("GET", MESSAGES)
def list_messages(call: Call) -> Answer:
    channel, limit = call.channel(), call.number("limit", 50)
    if not call.world.can(call.world.bot, channel, Permission.READ_MESSAGE_HISTORY):
        return []
    if not 1 <= limit <= PAGE:
        raise invalid("limit", "NUMBER_TYPE_RANGE", "1..100")
    before, after = call.number("before", 1 << 63), call.number("after", 0)
    found = sorted(channel.messages, key=lambda message: -message.id)
    found = [message for message in found if after < message.id < before]
    found = found[-limit:] if after else found[:limit]
    return [message.to_api() for message in found]


@route("POST", MESSAGES)
def create_message(call: Call) -> Answer:
    channel = call.channel()
    _check_place(channel)
    if channel.guild:
        _check_rights(call, channel)
    reference = _referenced(call, channel)
    draft = Draft(call.body, call.files, reference=reference)
    return post(call.world.bot, channel, draft).to_api()


def _check_place(channel: Channel) -> None:
    if channel.kind in (ChannelKind.FORUM, ChannelKind.CATEGORY):
        raise refusal(50024)
    if channel.kind is ChannelKind.DM and not all(user.dms_open for user in channel.recipients):
        raise refusal(50007)
    if channel.state and channel.state.archived and channel.state.locked:
        raise refusal(50083)


def _check_rights(call: Call, channel: Channel) -> None:
    inside = Permission.SEND_MESSAGES_IN_THREADS if channel.is_thread else Permission.SEND_MESSAGES
    call.world.require(channel, inside)
    if call.body.get("embeds"):
        call.world.require(channel, Permission.EMBED_LINKS)
    if call.files:
        call.world.require(channel, Permission.ATTACH_FILES)
    if call.body.get("message_reference"):
        call.world.require(channel, Permission.READ_MESSAGE_HISTORY)


def _referenced(call: Call, channel: Channel) -> Message | None:
    wanted = call.body.get("message_reference")
    if not wanted:
        return None
    message = channel.all_messages.get(int(wanted["message_id"]))
    if message is None and wanted.get("fail_if_not_exists", True):
        raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
    return message


@route("GET", MESSAGE)
def get_message(call: Call) -> Answer:
    message = call.message()
    call.world.require(message.channel, Permission.READ_MESSAGE_HISTORY)
    return message.to_api()


@route("PATCH", MESSAGE)
def edit_message(call: Call) -> Answer:
    message = call.message()
    if message.author is not call.world.bot:
        raise refusal(50005)
    if message.channel.archived:
        raise refusal(50083)
    return edit(message, call.body, call.files).to_api()


@route("DELETE", MESSAGE)
def delete_message(call: Call) -> Answer:
    message = call.message()
    if message.author is not call.world.bot:
        call.world.require(message.channel, Permission.MANAGE_MESSAGES)
    delete(message)
    return None


@route("POST", f"{MESSAGES}/bulk-delete")
def delete_many(call: Call) -> Answer:
    channel, form = call.channel(), Form()
    call.world.require(channel, Permission.MANAGE_MESSAGES)
    form.between("messages", call.body["messages"], 2, PAGE)
    form.done()
    for number in call.body["messages"]:
        message = channel.all_messages.get(int(number))
        if message:
            delete(message)
    return None


@route("POST", "/channels/{channel_id}/typing")
def type_on(call: Call) -> Answer:
    call.world.require(call.channel(), Permission.SEND_MESSAGES)
    return None


@route("PUT", REACTION)
def add_reaction(call: Call) -> Answer:
    message = call.message()
    wanted = Permission.ADD_REACTIONS | Permission.READ_MESSAGE_HISTORY
    call.world.require(message.channel, wanted)
    react(call.world.bot, message, unquote(call.path["emoji"]))
    return None


@route("DELETE", REACTION)
def remove_reaction(call: Call) -> Answer:
    users = call.message().reactions.get(unquote(call.path["emoji"]), [])
    if call.world.bot.id in users:
        users.remove(call.world.bot.id)
    return None


@route("PUT", *PIN)
def pin(call: Call) -> Answer:
    message = call.message()
    either = Permission.MANAGE_MESSAGES | Permission.PIN_MESSAGES
    if not call.world.permissions(call.world.bot, message.channel) & either:
        raise refusal(50013)
    message.pinned = True
    call.world.send_message_event("MESSAGE_UPDATE", message)
    return None


@route("DELETE", *PIN)
def unpin(call: Call) -> Answer:
    call.message().pinned = False
    return None


@route("GET", f"{MESSAGES}/pins")
def list_pins(call: Call) -> Answer:
    pinned = [message for message in call.channel().messages if message.pinned]
    items = [{"pinned_at": iso(each.created), "message": each.to_api()} for each in pinned]
    return {"items": items, "has_more": False}
