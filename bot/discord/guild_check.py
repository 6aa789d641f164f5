"""What `podium doctor` finds in each server: its roles, its channels, and whether boards exist."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

import discord

from bot.discord.alerts import ALERTS
from bot.discord.channels import SUBMISSIONS
from bot.discord.context import DiscordSettings
from bot.discord.roles import ADMIN, CREATOR, PURPOSES, guild_key
from bot.discord.setup_check import GuildGrant, GuildState, guild_states, offers_admin
from bot.ports import Store

_MOST_GUILDS = 20
"""The most servers that are examined: each takes several requests."""
_TEXT = discord.ChannelType.text.value


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One step of setting a server up, done or not; `remedy` says how to do it."""

    name: str
    is_done: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class _Stored:
    """What the database knows of one server."""

    parts: Mapping[str, str]
    """Ids of roles and channels by purpose; empty if an admin chose none."""
    channels: tuple[str, ...]
    """The channels in which admins allow submissions."""


async def examine_guilds(
    settings: DiscordSettings,
    guilds: Iterable[GuildGrant],
    store: Store | None,
    examples: frozenset[str] = frozenset(),
) -> AsyncIterator[SetupStep]:
    """Yield the setup steps of each server whose roles may give rights, then whether boards exist.

    Without a store, only what Discord reports is examined. `examples` are the names of the tasks
    that ship with Podium.
    """
    trusted = settings.trusted_guilds
    chosen = [each for each in guilds if not trusted or each.id in trusted][:_MOST_GUILDS]
    states = await guild_states(settings, [each.id for each in chosen])
    for grant, state in zip(chosen, states, strict=True):
        stored = await _stored(store, grant.id)
        for name, purpose in PURPOSES.items():
            yield _role(grant, state, name, stored.parts.get(purpose))
        yield _submissions(grant, state, stored)
        yield _alerts(grant, state, stored.parts.get(ALERTS))
    boards = () if store is None else await store.boards.all()
    names = sorted(each.name for each in boards)
    yield _boards(names)
    yield _own_boards([each for each in names if each not in examples])


async def _stored(store: Store | None, guild: int) -> _Stored:
    if store is None:
        return _Stored({}, ())
    key, parts = guild_key(guild), await store.moderation.parts()
    own = {purpose: part for (of, purpose), part in parts.items() if of == key}
    return _Stored(own, await store.moderation.channels(key))


def _role(grant: GuildGrant, state: GuildState, name: str, part: str | None) -> SetupStep:
    """Return whether the role that gives these rights exists, and its present name."""
    whose = _WHOSE[name]
    title = f"Discord {whose} in {grant.name}"
    found = [each for each in state.roles if part is None and each.name == name]
    found += [each for each in state.roles if str(each.id) == part]
    if not found:
        words = f"the role {name} does not exist yet"
        remedy = "`podium up` creates it, if the bot may Manage Roles"
        if part is not None:
            words = f"their role, {part}, was deleted"
            remedy = "choose another one with `/admin roles`, as an administrator of the server"
        return SetupStep(title, is_done=False, detail=words, remedy=remedy)
    role = min(found, key=lambda each: each.id)
    if name == ADMIN and not offers_admin(role.permissions):
        detail = f"their role {role.name} lacks Manage Threads, so they do not see `/admin`"
        remedy = "give it this permission, or allow `/admin` for it in the server's Integrations"
        return SetupStep(title, is_done=False, detail=detail, remedy=remedy)
    if name == ADMIN and state.holders_of(role) == 0:
        detail = f"no member has the role {role.name}, id {role.id}"
        remedy = "give it to yourself: on Discord, Server Settings, Members"
        return SetupStep(title, is_done=False, detail=detail, remedy=remedy)
    return SetupStep(title, is_done=True, detail=f"people with the role {role.name}, id {role.id}")


_WHOSE = {ADMIN: "admins", CREATOR: "creators"}


def _submissions(grant: GuildGrant, state: GuildState, stored: _Stored) -> SetupStep:
    """Return in which channels people submit, and whether the bot can write there."""
    title = f"Discord submissions in {grant.name}"
    part = stored.parts.get(SUBMISSIONS)
    allowed = stored.channels or (() if part is None else (part,))
    found = [each for each in state.channels if each.type == _TEXT and str(each.id) in allowed]
    if not allowed:
        found = [each for each in state.channels if each.type == _TEXT and each.name == SUBMISSIONS]
    if not found:
        remedy = "allow a channel with `/admin channel-allow`"
        if not allowed:
            remedy = "`podium up` creates #submissions, if the bot may Manage Channels"
        return SetupStep(title, is_done=False, detail="no channel accepts them", remedy=remedy)
    silent = [each.name for each in found if not state.may_write(each)]
    if silent:
        return _unwritable(title, silent)
    return SetupStep(title, is_done=True, detail=f"in {_names(each.name for each in found)}")


def _alerts(grant: GuildGrant, state: GuildState, part: str | None) -> SetupStep:
    """Return which channel gets alerts, and whether the bot can write there."""
    title = f"Discord alerts in {grant.name}"
    if not part:
        remedy = "give yourself the role of admins, and choose a channel with `/admin alerts`"
        return SetupStep(title, is_done=False, detail="no channel gets them", remedy=remedy)
    found = next((each for each in state.channels if str(each.id) == part), None)
    if found is None:
        remedy = "choose another one with `/admin alerts`"
        return SetupStep(title, is_done=False, detail="their channel was deleted", remedy=remedy)
    if not state.may_write(found):
        return _unwritable(title, [found.name])
    return SetupStep(title, is_done=True, detail=f"in {_names((found.name,))}")


def _unwritable(title: str, names: Iterable[str]) -> SetupStep:
    detail = f"the bot cannot write in {_names(names)}"
    remedy = "allow it to View Channel and Send Messages there"
    return SetupStep(title, is_done=False, detail=detail, remedy=remedy)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"#{each}" for each in names)


def _boards(names: Sequence[str]) -> SetupStep:
    if not names:
        remedy = "`podium discord setup` publishes an example"
        return SetupStep("boards", is_done=False, detail="there is none", remedy=remedy)
    return SetupStep("boards", is_done=True, detail=_first(names))


def _own_boards(names: Sequence[str]) -> SetupStep:
    """Return whether there is a board of another task than the examples."""
    if not names:
        remedy = "`/leaderboard create` makes one from your task; see tasks/README.md"
        return SetupStep("own board", is_done=False, detail="there is none", remedy=remedy)
    return SetupStep("own board", is_done=True, detail=_first(names))


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"
