"""The permissions that the bot needs, and what Discord reports of its guilds over HTTP."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus

import aiohttp
import discord
from discord.http import Route
from pydantic import BaseModel, TypeAdapter

from bot.discord.channels import SUBMISSIONS
from bot.discord.context import ADMIN_NEEDS, DiscordSettings
from bot.discord.roles import ADMIN, CREATOR, guild_key
from bot.domain.errors import SetupError
from bot.ports import Store

NEEDED = {
    "view_channel": "to see the channels in which people submit",
    "send_messages": "to answer, and to announce boards and ranks",
    "send_messages_in_threads": "to report into people's threads and boards' threads",
    "create_public_threads": "to open a thread per board, for its results",
    "create_private_threads": "to give each person a private thread per board",
    "manage_threads": "to add people to their threads, and to archive old threads",
    "attach_files": "to send long logs, task files and plots",
    "embed_links": "to show link previews",
    "read_message_history": "to edit its own messages after a restart",
    "manage_roles": f"to create the roles {ADMIN} and {CREATOR}",
    "manage_channels": f"to create #{SUBMISSIONS}",
}
"""Why the bot needs each permission, by discord.py's name for it."""


def needed_permissions() -> discord.Permissions:
    """Return everything in `NEEDED` as one value."""
    return discord.Permissions(**dict.fromkeys(NEEDED, True))


def missing_permissions(granted: int) -> tuple[str, ...]:
    """Return the permissions missing in a guild, by the names in Discord's settings."""
    has = discord.Permissions(granted)
    if has.administrator:
        return ()
    return tuple(name.replace("_", " ").title() for name in NEEDED if not getattr(has, name))


def bot_invite_link(application: int) -> str:
    """Return the link by which a guild's manager adds the bot."""
    return discord.utils.oauth_url(
        application, permissions=needed_permissions(), scopes=("bot", "applications.commands")
    )


TIMEOUT_S = 3.0
"""How long Discord may take for a request."""
COPY_AGAIN = "copy DISCORD_TOKEN again from the application's Bot page"
"""Advice for a token that Discord rejects."""
_LEASE = timedelta(seconds=3 * TIMEOUT_S)
"""How long only this process may create a channel."""
_PAGE = 200
"""The most guilds in one response of Discord."""


class _Application(BaseModel):
    """The fields of an application that are used here."""

    id: int
    name: str
    bot_public: bool = False


class _Overwrite(BaseModel):
    """The permissions that a channel adds or removes for a role or a member."""

    id: int
    allow: int
    deny: int


class GuildChannel(BaseModel):
    """The fields of a channel that are used here."""

    id: int
    name: str = ""
    type: int
    permission_overwrites: tuple[_Overwrite, ...] = ()


class _Guild(BaseModel):
    """The fields of a guild that are used here."""

    id: int
    name: str
    permissions: int


class GuildRole(BaseModel):
    """The fields of a role that are used here."""

    id: int
    name: str
    permissions: int


class _Member(BaseModel):
    """The fields of a member that are used here."""

    roles: tuple[int, ...]


class _Message(BaseModel):
    """The fields of a message that are used here."""

    content: str


class _User(BaseModel):
    """The fields of a user that are used here."""

    id: int


_GUILDS = TypeAdapter(tuple[_Guild, ...])
_ROLES = TypeAdapter(tuple[GuildRole, ...])
_COUNTS = TypeAdapter(dict[int, int])


class DiscordUnavailableError(Exception):
    """Discord does not answer, or answers with an error that is not about the token."""


@dataclass(frozen=True, slots=True)
class GuildGrant:
    """A guild that the bot is in, and the permissions that it lacks there."""

    id: int
    name: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetupReport:
    """What Discord reports about the token's bot."""

    bot: str
    invite: str
    guilds: tuple[GuildGrant, ...]
    is_public: bool
    """Whether everyone may invite the bot."""


async def check_setup(settings: DiscordSettings) -> SetupReport:
    """Return what Discord reports about the bot.

    SetupError if Discord rejects the token; DiscordUnavailableError if it does not answer.
    """
    async with _api_session(settings) as session:
        application = await _application(session)
        guilds: list[GuildGrant] = []
        last = 0
        while page := await _guilds(session, last):
            guilds += [_grant(each) for each in page]
            last = page[-1].id
            if len(page) < _PAGE:
                break
        invite, public = bot_invite_link(application.id), application.bot_public
        return SetupReport(application.name, invite, tuple(guilds), public)


_CHANNELS = TypeAdapter(tuple[GuildChannel, ...])
_MESSAGES = TypeAdapter(tuple[_Message, ...])
_WELCOME = (
    "Podium is here: leaderboards for GPU kernels. Try `/leaderboard template "
    "leaderboard_name:{board}`, then `/leaderboard submit ranked` with the file. "
    "`/leaderboard help` lists everything."
)


async def welcome(settings: DiscordSettings, guild: int, board: str, store: Store) -> str | None:
    """Post a first message in a guild's channel for submissions, which is created once.

    It is not posted again while it is among the channel's newest messages.
    Returns the link to the channel; None if it was deleted, because it is not created again.
    SetupError if the bot lacks a permission; DiscordUnavailableError if Discord does not answer.
    """
    async with _api_session(settings) as session:
        found = await _submission_channel(session, guild, store)
        if found is None:
            return None
        content, path = _WELCOME.format(board=board), f"channels/{found.id}/messages"
        if content not in await _newest(session, path):
            body: dict[str, object] = {"content": content, "allowed_mentions": {"parse": []}}
            await _post(session, path, body)
        return f"https://discord.com/channels/{guild}/{found.id}"


async def _submission_channel(
    session: aiohttp.ClientSession, guild: int, store: Store
) -> GuildChannel | None:
    """Return a guild's channel for submissions by its stored id; create it if none was stored."""
    path, key, moderation = f"guilds/{guild}/channels", guild_key(guild), store.moderation
    claimed = await moderation.claim_part(key, SUBMISSIONS, _LEASE)
    part = (await moderation.parts()).get((key, SUBMISSIONS))
    if part is None and not claimed:
        raise SetupError("another process creates #submissions now; run the command again")
    known = _CHANNELS.validate_json(await _get(session, path))
    texts = [each for each in known if each.type == discord.ChannelType.text.value]
    if part is not None:
        return next((each for each in texts if str(each.id) == part), None)
    found = next((each for each in texts if each.name == SUBMISSIONS), None)
    if found is None:
        body: dict[str, object] = {"name": SUBMISSIONS, "type": 0}
        found = GuildChannel.model_validate_json(await _post(session, path, body))
    await moderation.keep_part(key, SUBMISSIONS, str(found.id))
    return found


async def _newest(session: aiohttp.ClientSession, path: str) -> list[str]:
    """Return the texts of a channel's newest messages; none if the bot may not read them."""
    async with session.get(f"{path}?limit=50") as answer:
        found = _MESSAGES.validate_json(await answer.read()) if answer.ok else ()
        return [each.content for each in found]


async def _post(session: aiohttp.ClientSession, path: str, body: dict[str, object]) -> bytes:
    async with session.post(path, json=body) as answer:
        if answer.status == HTTPStatus.FORBIDDEN:
            raise SetupError(
                "the bot may not create #submissions or write in it; `podium doctor` names the "
                "missing permission"
            )
        answer.raise_for_status()
        return await answer.read()


def _grant(guild: _Guild) -> GuildGrant:
    return GuildGrant(guild.id, guild.name, missing_permissions(guild.permissions))


@dataclass(frozen=True, slots=True)
class GuildState:
    """A guild's roles with their members, its channels, and the bot's user id and roles there."""

    guild: int
    roles: tuple[GuildRole, ...]
    channels: tuple[GuildChannel, ...]
    bot: int
    bot_roles: frozenset[int]
    holders: Mapping[int, int] | None
    """How many members have each role; None if Discord does not say."""

    def holders_of(self, role: GuildRole) -> int | None:
        """Return how many members have a role; None if Discord does not say."""
        return None if self.holders is None else self.holders.get(role.id, 0)

    def may_write(self, channel: GuildChannel) -> bool:
        """Return whether the bot can see a channel and write in it."""
        held = {self.guild, *self.bot_roles}  # everyone has the role with the guild's id
        granted = 0
        for role in self.roles:
            granted |= role.permissions if role.id in held else 0
        if discord.Permissions(granted).administrator:
            return True
        for ids in ({self.guild}, self.bot_roles, {self.bot}):  # later ones override earlier ones
            changes = [each for each in channel.permission_overwrites if each.id in ids]
            for each in changes:
                granted &= ~each.deny
            for each in changes:
                granted |= each.allow
        has = discord.Permissions(granted)
        return has.view_channel and has.send_messages


async def guild_states(settings: DiscordSettings, guilds: Sequence[int]) -> tuple[GuildState, ...]:
    """Return the roles and channels of guilds; errors are those of `check_setup`."""
    async with _api_session(settings) as session:
        me = _User.model_validate_json(await _get(session, "users/@me")).id
        return tuple([await _state(session, each, me) for each in guilds])


async def _state(session: aiohttp.ClientSession, guild: int, me: int) -> GuildState:
    path = f"guilds/{guild}"
    roles = _ROLES.validate_json(await _get(session, f"{path}/roles"))
    channels = _CHANNELS.validate_json(await _get(session, f"{path}/channels"))
    member = _Member.model_validate_json(await _get(session, f"{path}/members/{me}"))
    async with session.get(f"{path}/roles/member-counts") as answer:
        holders = _COUNTS.validate_json(await answer.read()) if answer.ok else None
    return GuildState(guild, roles, channels, me, frozenset(member.roles), holders)


def offers_admin(granted: int) -> bool:
    """Return whether Discord offers `/admin` to people with these permissions."""
    has = discord.Permissions(granted)
    return has.administrator or has.is_superset(ADMIN_NEEDS)


async def application_of(settings: DiscordSettings) -> int:
    """Return the id of the token's application; SetupError if Discord rejects the token."""
    async with _api_session(settings) as session:
        try:
            return (await _application(session)).id
        except SetupError as error:
            raise SetupError(f"{error}; {COPY_AGAIN}") from error


@asynccontextmanager
async def _api_session(settings: DiscordSettings) -> AsyncIterator[aiohttp.ClientSession]:
    base = (settings.api_base or Route.BASE).rstrip("/")
    try:
        async with aiohttp.ClientSession(
            f"{base}/",
            headers={"Authorization": f"Bot {settings.token}"},
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        ) as session:
            yield session
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise DiscordUnavailableError(f"{base} does not answer ({type(error).__name__})") from error


async def _application(session: aiohttp.ClientSession) -> _Application:
    return _Application.model_validate_json(await _get(session, "applications/@me"))


async def _guilds(session: aiohttp.ClientSession, after: int) -> tuple[_Guild, ...]:
    text = await _get(session, f"users/@me/guilds?limit={_PAGE}&after={after}")
    return _GUILDS.validate_json(text)


async def _get(session: aiohttp.ClientSession, path: str) -> bytes:
    async with session.get(path) as answer:
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise SetupError("Discord rejects the token")
        answer.raise_for_status()
        return await answer.read()
