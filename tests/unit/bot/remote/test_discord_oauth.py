"""Tests of signing in by Discord's word, against a local Discord over real sockets."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from bot.domain.errors import StoreError, UserError
from bot.domain.records import KnownPerson
from bot.remote.discord_oauth import DiscordIdentities
from tests.doubles.discord.server import LocalDiscord

BACK = "https://podium.example.org/sign-in/discord/back"


@pytest.fixture
async def discord() -> AsyncIterator[LocalDiscord]:
    async with LocalDiscord() as server:
        server.oauth.redirects.add(BACK)
        yield server


def at(server: LocalDiscord, secret: str | None = None) -> DiscordIdentities:
    oauth = server.oauth
    secret = secret or oauth.secret
    return DiscordIdentities(oauth.client_id, secret, server.api_base, server.authorize_url)


async def agreed(identities: DiscordIdentities, state: str = "s") -> dict[str, list[str]]:
    """What Discord sends a person back with."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.get(identities.page(state, BACK))
    assert answer.status_code == 302, answer.text
    there = urlsplit(answer.headers["Location"])
    assert f"{there.scheme}://{there.netloc}{there.path}" == BACK
    return parse_qs(there.query)


async def test_a_code_is_good_once_for_who_agreed(discord: LocalDiscord) -> None:
    alice = discord.oauth.agrees = discord.user("alice")
    identities = at(discord)
    back = await agreed(identities, "a state")
    assert back["state"] == ["a state"]
    found = await identities.confirmed(back["code"][0], BACK)
    assert found == KnownPerson(f"discord:{alice.id}", "Alice", "alice")
    with pytest.raises(UserError, match="try again"):
        await identities.confirmed(back["code"][0], BACK)


async def test_a_code_is_for_one_address_and_a_short_time(discord: LocalDiscord) -> None:
    discord.oauth.agrees = discord.user("alice")
    identities = at(discord)
    (code,) = (await agreed(identities))["code"]
    with pytest.raises(UserError, match="try again"):
        await identities.confirmed(code, BACK + "/elsewhere")
    (code,) = (await agreed(identities))["code"]
    discord.clock.advance(61)
    with pytest.raises(UserError, match="try again"):
        await identities.confirmed(code, BACK)


async def test_who_declines_brings_no_code(discord: LocalDiscord) -> None:
    assert await agreed(at(discord)) == {"state": ["s"], "error": ["access_denied"]}


async def test_a_wrong_secret_is_our_fault_and_is_told_to_nobody(discord: LocalDiscord) -> None:
    discord.oauth.agrees = discord.user("alice")
    identities = at(discord, "hunter2")
    assert "hunter2" not in repr(identities)
    (code,) = (await agreed(identities))["code"]
    with pytest.raises(StoreError, match="DISCORD_CLIENT_SECRET") as refused:
        await identities.confirmed(code, BACK)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(503),
        httpx.Response(302, headers={"Location": "https://evil.example"}),
        httpx.Response(200, json={"token_type": "Bearer"}),
        httpx.Response(200, content=b"<html>"),
        httpx.ConnectError("no way"),
    ],
)
async def test_what_discord_answers_is_not_believed(answer: httpx.Response | Exception) -> None:
    async def answered(_: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    way = httpx.MockTransport(answered)
    identities = DiscordIdentities("1", "secret", transport=way)
    with pytest.raises(StoreError):
        await identities.confirmed("code", BACK)
