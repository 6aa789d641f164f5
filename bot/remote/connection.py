"""Requests to a Podium elsewhere: each within a deadline, each failure in one of our families."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import ValidationError

from bot.domain.agent import HARNESS_HEADER, PATH
from bot.domain.errors import StoreError, UserError
from bot.remote.address import Server
from runners.contract.wire import Wire

CONNECT_S = 10.0
ANSWER_S = 10.0
"""For a small request and its answer."""
LONG_S = 120.0
"""For one that carries a task's files or an evaluation."""
ANSWER_MAX = 32 << 20
"""Bytes of the longest answer: an order with its task's files."""

_PASSING = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may be taken."""

Answer = TypeVar("Answer", bound=Wire)


class LeaseGoneError(Exception):
    """The server says that the job is not this agent's any more; nothing was changed."""


class RefusedError(Exception):
    """The server refuses a request that it should take: one of the two programs has a bug."""


@dataclass(frozen=True, slots=True)
class Connection:
    """Asks one server under one session.

    StoreError while it is away; UserError when it will not have this agent at all: a token that is
    not good any more, another harness, an address that leads elsewhere.
    """

    client: httpx.AsyncClient
    url: str

    async def get(
        self,
        path: str,
        kind: type[Answer],
        query: Mapping[str, str | float | list[str]] | None = None,
        *,
        within_s: float = ANSWER_S,
    ) -> Answer:
        """What is at a path."""
        return parsed(await self._asked("GET", path, within_s, params=query), kind)

    async def ask(
        self, path: str, body: Wire | None, kind: type[Answer], *, within_s: float = ANSWER_S
    ) -> Answer:
        """The answer to a body."""
        return parsed(await self._sent(path, body, within_s), kind)

    async def send(
        self, path: str, body: Wire | None = None, *, within_s: float = ANSWER_S
    ) -> None:
        """Hand a body over; there is nothing to answer."""
        await self._sent(path, body, within_s)

    async def _sent(self, path: str, body: Wire | None, within_s: float) -> bytes:
        content = None if body is None else body.model_dump_json().encode()
        headers = {"Content-Type": "application/json"}
        return await self._asked("POST", path, within_s, content=content, headers=headers)

    async def listen(
        self, path: str, query: Mapping[str, str | float | list[str]], *, within_s: float
    ) -> AsyncGenerator[bytes, None]:
        """An answer piece by piece, each of which comes within that time."""
        timeout = httpx.Timeout(within_s, connect=CONNECT_S)
        async with self._opened("GET", path, params=query, timeout=timeout) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def _asked(
        self,
        method: str,
        path: str,
        within_s: float,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> bytes:
        try:
            async with asyncio.timeout(within_s), self._opened(method, path, **options) as response:
                return await _body(response)
        except TimeoutError as error:
            words = f"no answer from {self.url} within {within_s:.0f} s"
            raise StoreError(words) from error

    @asynccontextmanager
    async def _opened(
        self,
        method: str,
        path: str,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> AsyncIterator[httpx.Response]:
        try:
            async with self.client.stream(method, path, **options) as response:
                if not response.is_success:
                    raise self._refusal(response, await _body(response))
                yield response
        except httpx.InvalidURL as error:
            raise UserError("bad-server", f"{self.url} is no address: {error}") from error
        except (httpx.HTTPError, ssl.SSLError) as error:
            raise StoreError(f"no answer from {self.url}: {_reason(error)}") from error

    def _refusal(self, response: httpx.Response, text: bytes) -> Exception:
        status, (code, words) = response.status_code, _problem(response, text)
        if status >= 500 or status in _PASSING:
            return StoreError(f"{self.url} is away: {status} {words}")
        if code == "lease-lost":
            return LeaseGoneError(words)
        refusal = self._end(response, code, words)
        return refusal or RefusedError(f"{self.url} refuses: {status} {code}: {words}")

    def _end(self, response: httpx.Response, code: str, words: str) -> UserError | None:
        """Why this agent can do nothing more here until somebody changes something."""
        status = response.status_code
        if response.has_redirect_location:
            there = response.headers["Location"]
            words = f"{self.url} sends us on to {there}; give that address, if you trust it"
            return UserError("redirected", words)
        if code == "harness-version":
            return UserError(code, words)
        if status in {401, 403}:
            return UserError("bad-token", f"{self.url} refuses the token: {words}")
        if not code:
            words = f"{self.url} answers, but as no Podium does: {status} {words}"
            return UserError("no-podium", words)
        return None


@asynccontextmanager
async def connected(
    server: Server,
    session: str,
    harness: str,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[Connection]:
    """A way to ask the server; the certificates that this machine trusts count, and proxies do.

    `transport` is another way there than the network.
    """
    client = httpx.AsyncClient(
        base_url=f"{server.url}{PATH}/{session}/",
        headers={"Authorization": f"Bearer {server.token}", HARNESS_HEADER: harness},
        timeout=httpx.Timeout(LONG_S, connect=CONNECT_S),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
        follow_redirects=False,  # the token is for this server alone
        verify=ssl.create_default_context(),
        transport=transport,
    )
    async with client:
        yield Connection(client, server.url)


async def _body(response: httpx.Response) -> bytes:
    text = bytearray()
    async for piece in response.aiter_bytes():
        text += piece
        if len(text) > ANSWER_MAX:
            raise StoreError(f"the server's answer is longer than {ANSWER_MAX} bytes")
    return bytes(text)


def parsed(text: bytes, kind: type[Answer]) -> Answer:
    """An answer as this type; StoreError for one that does not fit."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        faults = error.error_count()
        raise StoreError(f"the server's answer is no {kind.__name__}: {faults} faults") from error


def _problem(response: httpx.Response, text: bytes) -> tuple[str, str]:
    """Code and words of a problem document; no code when it is none of ours."""
    try:
        told = json.loads(text)
        return str(told["code"]), str(told["detail"])
    except (ValueError, KeyError, TypeError):
        return "", response.reason_phrase or "it says nothing"


def _reason(error: Exception) -> str:
    """The words of a failed connection, which are often those of its cause."""
    words = str(error).strip()
    return words or type(error).__name__
