"""Limits the requests per token or address, counted in this process; reported in headers."""

import base64
import binascii
import ipaddress
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple

from fastapi import Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.accounts import Token, digest_of
from bot.domain.errors import StoreError
from bot.web.errors import problem
from bot.web.rendering import for_people
from bot.web.sessions import COOKIES

POPCORN = "/popcorn"
"""The prefix of KernelBot's routes."""
POPCORN_TOKEN = "X-Popcorn-Cli-Id"  # noqa: S105 - a header's name
"""The header in which popcorn-cli sends its token."""
WINDOW_S = 60.0
AT_ONCE = 100
"""The most concurrent requests per token, or per address without one.

A page that updates itself counts as one.
"""
OF_WORKER = 10
"""A worker gets this many times the limit: it reports each step of each job."""
_FREE = ("/static/", "/healthz")
"""Requests that do not count: files in memory, and health checks."""
_REMEMBERED_S = 60.0
"""Seconds for which a valid token is not looked up again."""
_MOST_KEYS = 20_000
"""When exceeded, keys with a full allowance are dropped, so that memory stays bounded."""


@dataclass(frozen=True, slots=True)
class RateLimitStatus:
    """How many requests are left, and the seconds until one more, and until all."""

    left: int
    next_s: float
    reset_s: float


@dataclass(slots=True)
class Limiter:
    """Counts by key: `most` at once, each restored after its share of the window."""

    most: int
    now: Callable[[], float] = time.monotonic
    _spent_until: dict[str, float] = field(default_factory=dict)

    def allowance(self, key: str) -> RateLimitStatus:
        """Return what this key may do now."""
        now = self.now()
        busy_s = max(0.0, self._spent_until.get(key, now) - now)
        left = math.floor((WINDOW_S - busy_s) / self._share_s + 1e-9)
        next_s = max(0.0, busy_s - WINDOW_S + self._share_s)
        return RateLimitStatus(max(0, left), next_s, busy_s)

    def count(self, key: str) -> RateLimitStatus:
        """Take one away; return what is left."""
        now = self.now()
        if len(self._spent_until) >= _MOST_KEYS and key not in self._spent_until:
            self._forget(now)
        self._spent_until[key] = max(now, self._spent_until.get(key, now)) + self._share_s
        return self.allowance(key)

    @property
    def _share_s(self) -> float:
        return WINDOW_S / self.most

    def _forget(self, now: float) -> None:
        """Drop keys without recent requests, or all keys if every one is recent."""
        busy = {key: until for key, until in self._spent_until.items() if until > now}
        self._spent_until = busy if len(busy) < _MOST_KEYS else {}


class _Known(NamedTuple):
    """A token that was valid at this time."""

    at: float
    of_worker: bool


class _Share(NamedTuple):
    """Which key a request counts for, and against which limit."""

    key: str
    limiter: Limiter
    at_once: int


@dataclass(slots=True)
class RateLimits:
    """The application behind the limits, except for free requests.

    A request counts for its token, or for its browser session. Only valid tokens have their own
    count. Requests without a token, and with an invalid one, count for their address, separately,
    so that guessing tokens does not lock out neighbors with a valid token or none.
    """

    app: ASGIApp
    limiter: Limiter
    find: Callable[[str], Awaitable[Token | None]]
    """Finds the live token of a digest."""
    _workers: Limiter = field(init=False)
    _known: "OrderedDict[str, _Known]" = field(default_factory=OrderedDict)
    _under_way: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Create the separate limit of workers."""
        self._workers = Limiter(OF_WORKER * self.limiter.most, self.limiter.now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, or refuse and say when to retry."""
        if scope["type"] != "http" or scope["path"].startswith(_FREE):
            await self.app(scope, receive, send)
            return
        key, limiter, at_once = await self._share(scope)
        allowance = limiter.allowance(key)
        if allowance.left < 1 or self._under_way[key] >= at_once:
            refusal = for_people(Request(scope), _refusal(limiter.most, allowance, at_once))
            await refusal(scope, receive, send)
            return
        allowance = limiter.count(key)

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_headers(limiter.most, allowance))
            await send(message)

        self._under_way[key] += 1
        try:
            await self.app(scope, receive, tell)
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]

    async def _share(self, scope: Scope) -> _Share:
        secret, address = _secret(scope), _address(scope)
        if not secret:
            return _Share(address, self.limiter, AT_ONCE)
        digest = digest_of(secret)
        known = await self._look_up(digest)
        if known is None:
            return _Share(f"guesses of {address}", self.limiter, AT_ONCE)
        if known.of_worker:
            return _Share(digest, self._workers, OF_WORKER * AT_ONCE)
        return _Share(digest, self.limiter, AT_ONCE)

    async def _look_up(self, digest: str) -> _Known | None:
        now = self.limiter.now()
        known = self._known.get(digest)
        if known is not None and now - known.at < _REMEMBERED_S:
            return known
        try:
            token = await self.find(digest)
        except StoreError:
            return known
        self._known.pop(digest, None)
        if token is None:
            return None
        known = self._known[digest] = _Known(now, token.is_worker_token)
        while len(self._known) > _MOST_KEYS:
            self._known.popitem(last=False)
        return known


def _refusal(most: int, allowance: RateLimitStatus, at_once: int) -> Response:
    wait_s = max(1, math.ceil(allowance.next_s))
    headers = {**_headers(most, allowance), "Retry-After": str(wait_s)}
    words = f"too many requests: {most} are taken in {WINDOW_S:.0f} s; come again in {wait_s} s"
    if allowance.left:
        words = f"too many at the same time: {at_once} are answered; let some of yours end first"
    return problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", words, headers)


def _headers(most: int, allowance: RateLimitStatus) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(most),
        "RateLimit-Remaining": str(allowance.left),
        "RateLimit-Reset": str(math.ceil(allowance.reset_s)),
    }


def _secret(scope: Scope) -> str:
    """Return a request's token or session, without its scheme or cookie name."""
    headers = Headers(scope=scope)
    usual = _token_in(headers.get("Authorization", ""))
    if scope["path"].startswith(f"{POPCORN}/"):
        return headers.get(POPCORN_TOKEN, "").strip() or usual
    cookies = Request(scope).cookies
    return usual or next((cookies[name] for name in COOKIES if name in cookies), "")


def _token_in(authorization: str) -> str:
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return value.strip() or scheme
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return value


def _address(scope: Scope) -> str:
    """Return the client's address; for IPv6 its network, since a household has billions."""
    host = (scope.get("client") or ("", 0))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    # A dual-stack socket sees IPv4 addresses mapped into IPv6, all in one network.
    address = getattr(address, "ipv4_mapped", None) or address
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
