"""Opening threads and forum posts."""

from dataclasses import dataclass, field

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.kinds import ChannelKind, Flag, MessageKind
from tests.doubles.discord.model.activity import require_free_thread
from tests.doubles.discord.model.channels import Channel, ThreadState
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.posting import Draft, post
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rules.messages import check_message
from tests.doubles.discord.wire import Json

ARCHIVE_AFTER_MIN = (60, 1440, 4320, 10080)
_PARENTS = {
    ChannelKind.PUBLIC_THREAD: (ChannelKind.TEXT, ChannelKind.FORUM),
    ChannelKind.NEWS_THREAD: (ChannelKind.NEWS,),
    ChannelKind.PRIVATE_THREAD: (ChannelKind.TEXT,),
}
"""The channels that may have threads of each kind: announcement channels have no private ones."""


@dataclass
class Opening:
    """The bot's request to open a thread."""

    body: Json
    kind: ChannelKind
    message: Message | None = None
    """The message under which the thread is opened."""
    files: list[File] = field(default_factory=list)


def open_thread(parent: Channel, opening: Opening) -> Channel:
    world, bot = parent.world, parent.world.bot
    _check(parent, opening)
    number = opening.message.id if opening.message else world.snowflake()
    name: str = opening.body["name"]
    now = world.clock.now()
    state = ThreadState(bot.id, created=now, active_at=now)
    state.auto_archive = opening.body.get("auto_archive_duration", 1440)
    state.invitable = opening.body.get("invitable", True)
    state.tags = [str(tag) for tag in opening.body.get("applied_tags", [])]
    state.members[bot.id] = world.clock.now()
    guild = parent.guild
    thread = Channel(world, number, opening.kind, name, guild, parent, state=state)
    world.channels[thread.id] = thread
    world.dispatch("THREAD_CREATE", thread.to_api() | {"newly_created": True}, thread)
    _begin(parent, thread, opening)
    return thread


def _check(parent: Channel, opening: Opening) -> None:
    form, limits = Form(), parent.world.limits
    form.required("name", opening.body.get("name"), 1, limits.thread_name)
    if opening.body.get("auto_archive_duration", 1440) not in ARCHIVE_AFTER_MIN:
        message = f"Value must be one of {ARCHIVE_AFTER_MIN}."
        form.wrong("auto_archive_duration", "BASE_TYPE_CHOICES", message)
    form.done()
    if parent.kind not in _PARENTS.get(opening.kind, ()) or parent.guild is None:
        raise refusal(50024)
    parent.world.require(parent, _needed(parent, opening.kind))
    if opening.message and opening.message.thread:
        raise refusal(160004)
    require_free_thread(parent.guild)
    if parent.kind is ChannelKind.FORUM:
        check_message(limits, opening.body.get("message") or {}, opening.files)


def thread_of(message: Message) -> ChannelKind:
    """The kind of a thread under a message, which is that of the message's channel."""
    is_news = message.channel.kind is ChannelKind.NEWS
    return ChannelKind.NEWS_THREAD if is_news else ChannelKind.PUBLIC_THREAD


def _needed(parent: Channel, kind: ChannelKind) -> Permission:
    if kind is ChannelKind.PRIVATE_THREAD:
        return Permission.CREATE_PRIVATE_THREADS
    if parent.kind is ChannelKind.FORUM:
        return Permission.SEND_MESSAGES
    return Permission.CREATE_PUBLIC_THREADS


def _begin(parent: Channel, thread: Channel, opening: Opening) -> None:
    """Add a forum post's first message, or make the thread visible in its channel."""
    world = parent.world
    if parent.kind is ChannelKind.FORUM:
        first = post(world.bot, thread, Draft(opening.body["message"], opening.files))
        del thread.all_messages[first.id]
        first.id = thread.id
        thread.all_messages[first.id] = first
    elif opening.message:
        opening.message.flags |= Flag.HAS_THREAD
        world.send_message_event("MESSAGE_UPDATE", opening.message)
    elif thread.kind is ChannelKind.PUBLIC_THREAD:
        draft = Draft({"content": thread.name}, kind=MessageKind.THREAD_CREATED)
        post(world.bot, parent, draft)
