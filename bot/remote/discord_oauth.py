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
ANSWER_S = 10.0
"""Seconds for both requests of a sign-in together."""
_SCOPE = "identify"


class _Answer(BaseModel):
    """The fields of a Discord response that are used here."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Grant(_Answer):
    access_token: str = Field(min_length=1, max_length=4096, repr=False)


class _User(_Answer):
    id: str = Field(pattern=r"^[0-9]{1,20}$")
    username: str = Field(min_length=1, max_length=100)
    global_name: str | None = Field(default=None, max_length=100)


_Kind = TypeVar("_Kind", bound=_Answer)


@dataclass(frozen=True, slots=True)
class DiscordIdentities:
    """An application of Discord, which only asks for the user's identity.

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
        wanted = {
            "response_type": "code",
            "client_id": self.client_id,
            "scope": _SCOPE,
            "state": state,
            "redirect_uri": back,
            "prompt": "none",  # a person who has consented once is not asked again
        }
        return f"{self.page_url}?{urlencode(wanted)}"

    async def confirmed(self, code: str, back: str) -> KnownPerson:
        """Return the account of the person who consented; the access token is not stored."""
        try:
            async with asyncio.timeout(ANSWER_S), self._client() as client:
                grant = await self._exchanged(client, code, back)
                headers = {"Authorization": f"Bearer {grant.access_token}"}
                user = _read(await client.get("users/@me", headers=headers), _User)
        except (httpx.HTTPError, TimeoutError) as error:
            raise StoreError(f"Discord does not answer: {type(error).__name__}") from error
        return KnownPerson(f"discord:{user.id}", user.global_name or user.username)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.api_base.rstrip("/") + "/",
            timeout=ANSWER_S,
            follow_redirects=False,  # secret and code are only for this address
            transport=self.transport,
        )

    async def _exchanged(self, client: httpx.AsyncClient, code: str, back: str) -> _Grant:
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": back}
        answer = await client.post("oauth2/token", data=form, auth=(self.client_id, self.secret))
        if answer.status_code == httpx.codes.BAD_REQUEST:
            words = "Discord does not confirm this sign-in: its code is old or not ours; try again"
            raise UserError("sign-in-refused", words)
        return _read(answer, _Grant)


def _read(answer: httpx.Response, kind: type[_Kind]) -> _Kind:
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise StoreError("Discord refuses DISCORD_CLIENT_ID with DISCORD_CLIENT_SECRET")
    if not answer.is_success:
        raise StoreError(f"Discord answers {answer.status_code} to a sign-in")
    try:
        return kind.model_validate_json(answer.content)
    except ValidationError as error:
        faults = error.error_count()
        raise StoreError(f"Discord's answer to a sign-in has {faults} faults") from error
