"""Sign-in with Discord: OAuth 2, the authorization code grant."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlencode

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.domain.errors import StoreError, UserError
from bot.domain.records import KnownPerson

API = "https://discord.com/api/v10"
PAGE = "https://discord.com/oauth2/authorize"
SIGN_IN_LIMIT_S = 10.0
"""Seconds for both requests of a sign-in together."""
_SCOPE = "identify"


class _DiscordBody(BaseModel):
    """The fields of a Discord response that are used here."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _AccessToken(_DiscordBody):
    access_token: str = Field(min_length=1, max_length=4096, repr=False)


class _User(_DiscordBody):
    id: str = Field(pattern=r"^[0-9]{1,20}$")
    username: str = Field(min_length=1, max_length=100)
    global_name: str | None = Field(default=None, max_length=100)


_Body = TypeVar("_Body", bound=_DiscordBody)


@dataclass(frozen=True, slots=True)
class DiscordIdentities:
    """A Discord application that requests only the user's identity.

    `transport` replaces the network.
    """

    client_id: str
    secret: str = field(repr=False)
    api_base: str = API
    page_url: str = PAGE
    transport: httpx.AsyncBaseTransport | None = None

    @property
    def name(self) -> str:
        """Return the provider's name for people."""
        return "Discord"

    def page(self, state: str, back: str) -> str:
        """Return the address where a person consents."""
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "scope": _SCOPE,
            "state": state,
            "redirect_uri": back,
            "prompt": "none",  # a person who has consented once is not asked again
        }
        return f"{self.page_url}?{urlencode(query)}"

    async def confirmed(self, code: str, back: str) -> KnownPerson:
        """Return the account of the person who consented; the access token is not stored."""
        try:
            async with asyncio.timeout(SIGN_IN_LIMIT_S), self._client() as client:
                grant = await self._exchange_code(client, code, back)
                headers = {"Authorization": f"Bearer {grant.access_token}"}
                user = _read(await client.get("users/@me", headers=headers), _User)
        except (httpx.HTTPError, TimeoutError) as error:
            raise StoreError(f"Discord does not answer: {type(error).__name__}") from error
        name = user.global_name or user.username
        return KnownPerson(f"discord:{user.id}", name, user.username)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.api_base.rstrip("/") + "/",
            timeout=SIGN_IN_LIMIT_S,
            follow_redirects=False,  # secret and code are only for this address
            transport=self.transport,
        )

    async def _exchange_code(self, client: httpx.AsyncClient, code: str, back: str) -> _AccessToken:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
        response = await client.post("oauth2/token", data=form, auth=(self.client_id, self.secret))
        if response.status_code == httpx.codes.BAD_REQUEST:
            words = "Discord did not confirm this sign-in: its code has expired; try again"
            raise UserError("sign-in-refused", words)
        return _read(response, _AccessToken)


def _read(response: httpx.Response, kind: type[_Body]) -> _Body:
    if response.status_code == httpx.codes.UNAUTHORIZED:
        raise StoreError("Discord refuses DISCORD_CLIENT_ID with DISCORD_CLIENT_SECRET")
    if not response.is_success:
        raise StoreError(f"Discord answers {response.status_code} to a sign-in")
    try:
        return kind.model_validate_json(response.content)
    except ValidationError as error:
        faults = error.error_count()
        raise StoreError(f"Discord's answer to a sign-in has {faults} faults") from error
