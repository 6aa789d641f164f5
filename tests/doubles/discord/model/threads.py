"""Opening threads and forum posts."""

from dataclasses import dataclass, field

from tests.doubles.discord.errors import Form, refusal
from tests.doubles.discord.kinds import ChannelKind, Flag, MessageKind
from tests.doubles.discord.model.channels import Channel, ThreadState
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.posting import Draft, post
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rules.messages import check_message
from tests.doubles.discord.wire import Json

ARCHIVE_AFTER_MIN = (60, 1440, 4320, 10080)
_PARENTS = (ChannelKind.TEXT, ChannelKind.NEWS, ChannelKind.FORUM)


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
    state = ThreadState(bot.id, created=world.clock.now())
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
    if parent.kind not in _PARENTS or parent.guild is None:
        raise refusal(50024)
    parent.world.require(parent, _needed(parent, opening.kind))
    if opening.message and opening.message.thread:
        raise refusal(160004)
    active = [x for x in parent.guild.channels if x.is_thread and not x.archived]
    if len(active) >= limits.active_threads:
        raise refusal(160006)
    if parent.kind is ChannelKind.FORUM:
        check_message(limits, opening.body.get("message") or {}, opening.files)


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
