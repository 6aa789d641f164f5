"""Tries the token without connecting: who the bot is, and what its guilds let it do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
from discord.http import Route
from pydantic import BaseModel, TypeAdapter

from bot.discord.context import DoorSettings
from bot.discord.permissions import invite_link, lacking
from bot.domain.errors import SetupError

PATIENCE_S = 3.0
ANEW = "copy DISCORD_TOKEN anew from the application's Bot page"
"""What helps where Discord refuses the token."""
_PAGE = 200
"""Guilds that Discord tells of at once."""


class _Application(BaseModel):
    """As much of an application as is used here."""

    id: int
    name: str


class _Guild(BaseModel):
    """As much of a guild as is used here."""

    id: int
    name: str
    permissions: int


_GUILDS = TypeAdapter(tuple[_Guild, ...])


class AwayError(Exception):
    """Discord does not answer, or not in a way that says anything about the token."""


@dataclass(frozen=True, slots=True)
class GuildGrant:
    """A guild that the bot is in, and the permissions that it lacks there."""

    name: str
    lacks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Checkup:
    """What Discord says of the token's bot."""

    bot: str
    invite: str
    guilds: tuple[GuildGrant, ...]


async def check_up(settings: DoorSettings) -> Checkup:
    """SetupError for a token that Discord refuses, AwayError when nothing can be found out."""
    async with _asking(settings) as session:
        application = await _application(session)
        guilds: list[GuildGrant] = []
        last = 0
        while found := await _guilds(session, last):
            guilds += [GuildGrant(each.name, lacking(each.permissions)) for each in found]
            last = found[-1].id
            if len(found) < _PAGE:
                break
        return Checkup(application.name, invite_link(application.id), tuple(guilds))


async def application_of(settings: DoorSettings) -> int:
    """The application that the token is of; SetupError for a token that Discord refuses."""
    async with _asking(settings) as session:
        try:
            return (await _application(session)).id
        except SetupError as error:
            raise SetupError(f"{error}; {ANEW}") from error


@asynccontextmanager
async def _asking(settings: DoorSettings) -> AsyncIterator[aiohttp.ClientSession]:
    base = (settings.api_base or Route.BASE).rstrip("/")
    try:
        async with aiohttp.ClientSession(
            f"{base}/",
            headers={"Authorization": f"Bot {settings.token}"},
            timeout=aiohttp.ClientTimeout(total=PATIENCE_S),
        ) as session:
            yield session
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise AwayError(f"{base} gives no answer ({type(error).__name__})") from error


async def _application(session: aiohttp.ClientSession) -> _Application:
    return _Application.model_validate_json(await _get(session, "applications/@me"))


async def _guilds(session: aiohttp.ClientSession, after: int) -> tuple[_Guild, ...]:
    text = await _get(session, f"users/@me/guilds?limit={_PAGE}&after={after}")
    return _GUILDS.validate_json(text)


async def _get(session: aiohttp.ClientSession, path: str) -> bytes:
    async with session.get(path) as answer:
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise SetupError("Discord refuses the token")
        answer.raise_for_status()
        return await answer.read()
