"""Opening, joining, leaving and listing threads."""

from tests.doubles.discord.errors import refusal
from tests.doubles.discord.kinds import ChannelKind
from tests.doubles.discord.limits import MESSAGE, THREADS
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.people import User
from tests.doubles.discord.model.posting import set_thread_member
from tests.doubles.discord.model.threads import Opening, open_thread, thread_of
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.rest.calls import Answer, Call, route

MEMBERS = "/channels/{channel_id}/thread-members"
MEMBER = f"{MEMBERS}/{{user_id}}"


@route("POST", THREADS, status=201)
def create_thread(call: Call) -> Answer:
    parent = call.channel()
    forum = parent.kind is ChannelKind.FORUM
    kind = call.body.get("type", ChannelKind.PRIVATE_THREAD)
    opening = Opening(call.body, ChannelKind.PUBLIC_THREAD if forum else ChannelKind(kind))
    opening.files = call.files
    thread = open_thread(parent, opening)
    first = {"message": thread.all_messages[thread.id].to_api()} if forum else {}
    return thread.to_api() | first


@route("POST", f"{MESSAGE}/threads", status=201)
def create_thread_from(call: Call) -> Answer:
    message = call.message()
    opening = Opening(call.body, thread_of(message), message)
    return open_thread(message.channel, opening).to_api()


def _user(call: Call) -> User | None:
    me = call.path["user_id"] == "@me"
    return call.world.bot if me else call.world.users.get(call.id("user_id"))


@route("PUT", MEMBER)
def add_member(call: Call) -> Answer:
    thread, user = call.thread(), _user(call)
    if thread.archived:
        raise refusal(50083)
    assert thread.guild is not None
    assert thread.parent is not None
    if user is None or user.id not in thread.guild.members:
        raise refusal(10007)
    if user is not call.world.bot:
        call.world.require(thread, Permission.SEND_MESSAGES_IN_THREADS)
    if not call.world.sees(user, thread.parent):
        raise refusal(50001)
    if user.id not in thread.members:
        set_thread_member(thread, user, inside=True)
    return None


@route("DELETE", MEMBER)
def remove_member(call: Call) -> Answer:
    thread, user = call.thread(), _user(call)
    own = thread.private and thread.state and thread.state.owner == call.world.bot.id
    if user is not call.world.bot and not own:
        call.world.require(thread, Permission.MANAGE_THREADS)
    if user is None or user.id not in thread.members:
        raise refusal(10007)
    set_thread_member(thread, user, inside=False)
    return None


@route("GET", MEMBERS)
def list_members(call: Call) -> Answer:
    thread = call.thread()
    return [thread.member_to_api(user) for user in thread.members]


@route(
    "GET",
    f"{THREADS}/archived/{{kind}}",
    "/channels/{channel_id}/users/@me/threads/archived/private",
)
def list_archived(call: Call) -> Answer:
    kind, channel = call.path.get("kind"), call.channel()
    call.world.require(channel, Permission.READ_MESSAGE_HISTORY)
    if kind == "private":
        call.world.require(channel, Permission.MANAGE_THREADS)
    private = kind != "public"
    threads = [x for x in channel.threads if x.archived and x.private == private]
    if kind is None:
        threads = [x for x in threads if call.world.bot.id in x.members]
    return {"threads": [x.to_api() for x in threads], "members": [], "has_more": False}


@route("GET", "/guilds/{guild_id}/threads/active")
def list_active(call: Call) -> Answer:
    world, bot = call.world, call.world.bot
    active: list[Channel] = [
        channel
        for channel in call.guild().channels
        if channel.is_thread and not channel.archived and world.sees(bot, channel)
    ]
    mine = [thread.member_to_api(bot.id) for thread in active if bot.id in thread.members]
    threads = [thread.to_api() for thread in active]
    return {"threads": threads, "members": mine, "has_more": False}
