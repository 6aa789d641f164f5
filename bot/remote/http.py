"""The connection to a remote Podium: its address, timeouts and errors."""

import asyncio
import ipaddress
import json
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from bot.domain.api.workers import HARNESS_HEADER, PATH
from bot.domain.errors import StoreError, UserError
from runners.contract.wire import Wire


@dataclass(frozen=True, slots=True)
class Server:
    """A remote Podium, and the token for it."""

    url: str
    """Without a trailing slash."""
    token: str = field(repr=False)


def server(url: str, token: str, *, insecure: bool = False) -> Server:
    """Return the server that a worker judges for; UserError when no token may be sent there."""
    normalized = address(url, insecure=insecure)
    if not token.strip():
        raise UserError(
            "no-token",
            "a worker needs a token: --token T or PODIUM_WORKER_TOKEN; an admin creates one: "
            "podium token create --worker NAME",
        )
    return Server(normalized, checked_token(token))


def address(url: str, *, insecure: bool = False) -> str:
    """Return an address, normalized; UserError when no token may be sent there.

    `insecure` allows plain HTTP to another machine, where anyone on the network path can read the
    token.
    """
    parts = urlsplit(url.strip())
    try:
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise _bad(url) from error
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment:
        raise _bad(url)
    if parts.username or parts.password:
        raise UserError("bad-server", "leave user and password out of the server's address")
    if parts.scheme == "http" and not insecure and not _is_loopback(host):
        raise UserError(
            "plain-http",
            f"the token would go to {host} unencrypted; use https://, or --plain-http on a network "
            "that only you use",
        )
    return url.strip().rstrip("/")


def _bad(url: str) -> UserError:
    return UserError(
        "bad-server",
        f"{url!r} is not a server's address; write one such as https://podium.example.org",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_token(token: str) -> str:
    """Return a token without white space; UserError for an invalid one."""
    stripped = token.strip()
    if not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise UserError(
            "bad-token", "this is not a token; tokens are printable ASCII without spaces"
        )
    return stripped


CONNECT_S = 10.0
RESPONSE_S = 10.0
"""Seconds for a small request and its response."""
LONG_S = 120.0
"""Seconds for a request or response with a task's files or an evaluation."""
RESPONSE_MAX = 32 << 20
"""The most bytes of a response: an evaluation request with its task's files."""
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})
"""OpenSSL's errors for a response that is not TLS."""
MAX_MESSAGE_CHARS = 2000
"""The most characters shown of a refusal."""

_TEMPORARY = frozenset({408, 425, 429})
"""Statuses below 500 after which the same request may succeed."""

Body = TypeVar("Body", bound=Wire)


class LeaseGoneError(Exception):
    """The server says that this worker no longer holds the job; nothing was changed."""


class RefusedError(Exception):
    """The server refuses a valid request: one of the two programs has a bug."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response: its status, and the code and text of its problem document.

    The code is empty if the response is not from Podium. `redirected_to` is where it redirects.
    """

    url: str
    status: int
    code: str
    message: str
    redirected_to: str | None = None

    def common_error(self) -> Exception | None:
        """Return the error if it is the same for all callers; else None."""
        if self.status >= 500 or self.status in _TEMPORARY:
            return StoreError(f"{self.url} is unavailable: {self.status} {self.message}")
        if self.redirected_to is not None:
            words = (
                f"{self.url} redirects to {self.redirected_to}; use that address, if you trust it"
            )
            return UserError("redirected", words)
        return None

    def not_podium_error(self) -> UserError:
        """Return the error for a response that no Podium sends."""
        words = f"{self.url} is not a Podium server: it answers {self.status} {self.message}"
        return UserError("no-podium", words)


def worker_error(refusal: Refusal) -> Exception:
    """Return the error of a refusal for a remote worker."""
    if refusal.code == "lease-lost":
        return LeaseGoneError(refusal.message)
    words = f"{refusal.url} refuses: {refusal.status} {refusal.code}: {refusal.message}"
    return refusal.common_error() or _final_worker_error(refusal) or RefusedError(words)


def _final_worker_error(refusal: Refusal) -> UserError | None:
    """Return the error after which a remote worker cannot continue until a person acts."""
    if refusal.code == "harness-version":
        return UserError(refusal.code, refusal.message)
    if refusal.status in {401, 403}:
        return UserError("bad-token", f"{refusal.url} refuses the token: {refusal.message}")
    return None if refusal.code else refusal.not_podium_error()


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """A connection to one server under one session; `to_error` converts a refusal to an error.

    StoreError while it is unavailable; UserError when it refuses the caller: an invalid token,
    another harness, a redirect.
    """

    client: httpx.AsyncClient
    url: str
    to_error: Callable[[Refusal], Exception] = worker_error

    async def get(
        self,
        path: str,
        kind: type[Body],
        query: Mapping[str, str | float | list[str]] | None = None,
        *,
        within_s: float = RESPONSE_S,
    ) -> Body:
        """Return the response at a path."""
        return parsed(await self.request("GET", path, within_s, params=query), kind)

    async def post(
        self, path: str, body: Wire | None, kind: type[Body], *, within_s: float = RESPONSE_S
    ) -> Body:
        """Send a body and return the response."""
        return parsed(await self._post(path, body, within_s), kind)

    async def send(
        self, path: str, body: Wire | None = None, *, within_s: float = RESPONSE_S
    ) -> None:
        """Send a body; the response is empty."""
        await self._post(path, body, within_s)

    async def _post(self, path: str, body: Wire | None, within_s: float) -> bytes:
        content = None if body is None else body.model_dump_json().encode()
        headers = {"Content-Type": "application/json"}
        return await self.request("POST", path, within_s, content=content, headers=headers)

    async def listen(
        self,
        path: str,
        query: Mapping[str, str | float | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        within_s: float,
    ) -> AsyncGenerator[bytes, None]:
        """Yield a response piece by piece, each of which must arrive within that time."""
        timeout = httpx.Timeout(within_s, connect=CONNECT_S)
        options = {"params": query, "headers": headers, "timeout": timeout}
        async with self._stream("GET", path, **options) as response:
            async for piece in response.aiter_bytes():
                yield piece

    async def request(
        self,
        method: str,
        path: str,
        within_s: float,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> bytes:
        """Return the raw response to any request."""
        try:
            async with asyncio.timeout(within_s), self._stream(method, path, **options) as response:
                return await _body(response)
        except TimeoutError as error:
            words = f"no answer from {self.url} within {within_s:.0f} s"
            raise StoreError(words) from error

    @asynccontextmanager
    async def _stream(
        self,
        method: str,
        path: str,
        **options: Any,  # noqa: ANN401 - httpx's own
    ) -> AsyncIterator[httpx.Response]:
        try:
            async with self.client.stream(method, path, **options) as response:
                if not response.is_success:
                    raise self.to_error(_refusal(self.url, response, await _body(response)))
                yield response
        except httpx.InvalidURL as error:
            raise UserError("bad-server", f"{self.url} is not an address: {error}") from error
        except (httpx.HTTPError, ssl.SSLError) as error:
            raise StoreError(f"no answer from {self.url}: {_reason(error)}") from error


@asynccontextmanager
async def connected(
    server: Server, session: str, harness: str, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[ServerConnection]:
    """Yield a connection to the server; it uses this machine's trusted certificates and proxies.

    `transport` replaces the network.
    """
    headers = {"Authorization": f"Bearer {server.token}", HARNESS_HEADER: harness}
    async with new_client(f"{server.url}{PATH}/{session}/", headers, transport) as client:
        yield ServerConnection(client, server.url)


def new_client(
    base_url: str, headers: Mapping[str, str], transport: httpx.AsyncBaseTransport | None
) -> httpx.AsyncClient:
    """Return a client that uses this machine's trusted certificates and proxies."""
    return httpx.AsyncClient(
        base_url=base_url,
        headers=headers,
        timeout=httpx.Timeout(LONG_S, connect=CONNECT_S),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=8),
        follow_redirects=False,  # the token is only for this server
        verify=ssl.create_default_context(),
        transport=transport,
    )


async def _body(response: httpx.Response) -> bytes:
    text = bytearray()
    async for piece in response.aiter_bytes():
        text += piece
        if len(text) > RESPONSE_MAX:
            raise StoreError(f"the server's answer is longer than {RESPONSE_MAX} bytes")
    return bytes(text)


def parsed(text: bytes, kind: type[Body]) -> Body:
    """Return a response as this type; StoreError for an invalid one."""
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        faults = error.error_count()
        words = f"the server's answer is not a valid {kind.__name__}: {faults} faults"
        raise StoreError(words) from error


def _refusal(url: str, response: httpx.Response, text: bytes) -> Refusal:
    code, words = _problem(response, text)
    is_redirect = response.has_redirect_location
    location = response.headers["Location"][:MAX_MESSAGE_CHARS] if is_redirect else None
    return Refusal(url, response.status_code, code, words, location)


def _problem(response: httpx.Response, text: bytes) -> tuple[str, str]:
    """Return code and text of a problem document; an empty code if it is not from Podium."""
    try:
        problem = json.loads(text)
        return str(problem["code"])[:MAX_MESSAGE_CHARS], str(problem["detail"])[:MAX_MESSAGE_CHARS]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", response.reason_phrase[:MAX_MESSAGE_CHARS] or "no message"


def _reason(error: BaseException) -> str:
    """Return the message of a failed connection, often that of its cause."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return (
                f"its certificate cannot be trusted ({cause.verify_message}); if you trust it, set "
                "SSL_CERT_FILE to a file with it or with its issuer's certificate"
            )
        if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            return "it does not use HTTPS there; check whether its address must begin with http://"
        cause = cause.__cause__ or cause.__context__
    words = str(error).strip()
    return words or type(error).__name__
