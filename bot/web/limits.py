"""Limits the requests per token or address, counted in this process; reported in headers."""

import base64
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
from bot.web import errors, rendering, sessions
from bot.web.connections import address_group

POPCORN = "/popcorn"
"""The prefix of KernelBot's routes."""
POPCORN_TOKEN = "X-Popcorn-Cli-Id"  # noqa: S105 - a header's name
"""The header in which popcorn-cli sends its token."""
WINDOW_S = 60.0
AT_ONCE = 100
"""The most concurrent requests per token, or per address without one.

A page that updates itself counts as one.
"""
WORKER_FACTOR = 10
"""A worker gets this many times the limit: it reports each step of each job."""
_UNLIMITED = ("/static/", "/healthz")
"""Paths whose requests do not count: files in memory, and health checks."""
_CACHED_S = 60.0
"""Seconds for which a valid token is not looked up again."""
_MOST_KEYS = 20_000
"""When exceeded, keys with a full allowance are dropped, so that memory stays bounded."""


@dataclass(frozen=True, slots=True)
class RateLimitStatus:
    """How many requests are left, and the seconds until one more is, and until all are."""

    left: int
    next_s: float
    reset_s: float


@dataclass(slots=True)
class Limiter:
    """Counts by key: `most` at once, each restored after its share of the window."""

    most: int
    now: Callable[[], float] = time.monotonic
    _spent_until: dict[str, float] = field(default_factory=dict)

    def status_of(self, key: str) -> RateLimitStatus:
        """Return what this key may do now."""
        now = self.now()
        busy_s = max(0.0, self._spent_until.get(key, now) - now)
        left = math.floor((WINDOW_S - busy_s) / self._request_s + 1e-9)
        next_s = max(0.0, busy_s - WINDOW_S + self._request_s)
        return RateLimitStatus(max(0, left), next_s, busy_s)

    def count(self, key: str) -> RateLimitStatus:
        """Count one request; return what is left."""
        now = self.now()
        if len(self._spent_until) >= _MOST_KEYS and key not in self._spent_until:
            self._drop_keys(now)
        self._spent_until[key] = max(now, self._spent_until.get(key, now)) + self._request_s
        return self.status_of(key)

    @property
    def _request_s(self) -> float:
        return WINDOW_S / self.most

    def _drop_keys(self, now: float) -> None:
        """Drop keys without recent requests, or all keys if every one is recent."""
        busy = {key: until for key, until in self._spent_until.items() if until > now}
        self._spent_until = busy if len(busy) < _MOST_KEYS else {}


class _CachedToken(NamedTuple):
    """A token that was valid at this time."""

    at: float
    is_worker_token: bool


class _Quota(NamedTuple):
    """Which key a request counts for, and against which limit."""

    key: str
    limiter: Limiter
    at_once: int


@dataclass(slots=True)
class RateLimits:
    """The application, with limits on the rate of requests; some paths have none.

    A request counts for its token, or for its browser session. Only valid tokens have their own
    count. Requests without a token, and with an invalid one, count for their address, separately,
    so that guessing tokens does not lock out neighbors with a valid token or none.
    """

    app: ASGIApp
    limiter: Limiter
    find: Callable[[str], Awaitable[Token | None]]
    """Finds the live token of a digest."""
    _workers: Limiter = field(init=False)
    _tokens: "OrderedDict[str, _CachedToken]" = field(default_factory=OrderedDict)
    _active: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Create the separate limit of workers."""
        self._workers = Limiter(WORKER_FACTOR * self.limiter.most, self.limiter.now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond, or refuse and say when to retry."""
        if scope["type"] != "http" or scope["path"].startswith(_UNLIMITED):
            await self.app(scope, receive, send)
            return
        key, limiter, at_once = await self._quota_of(scope)
        status = limiter.status_of(key)
        if status.left < 1 or self._active[key] >= at_once:
            refusal = rendering.as_page(Request(scope), _refusal(limiter.most, status, at_once), {})
            await refusal(scope, receive, send)
            return
        status = limiter.count(key)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_headers(limiter.most, status))
            await send(message)

        self._active[key] += 1
        try:
            await self.app(scope, receive, send_with_headers)
        finally:
            self._active[key] -= 1
            if not self._active[key]:
                del self._active[key]

    async def _quota_of(self, scope: Scope) -> _Quota:
        secret, address = _secret(scope), address_group((scope.get("client") or ("", 0))[0])
        if not secret:
            return _Quota(address, self.limiter, AT_ONCE)
        digest = digest_of(secret)
        token = await self._look_up(digest)
        if token is None:
            return _Quota(f"guesses of {address}", self.limiter, AT_ONCE)
        if token.is_worker_token:
            return _Quota(digest, self._workers, WORKER_FACTOR * AT_ONCE)
        return _Quota(digest, self.limiter, AT_ONCE)

    async def _look_up(self, digest: str) -> _CachedToken | None:
        now = self.limiter.now()
        cached = self._tokens.get(digest)
        if cached is not None and now - cached.at < _CACHED_S:
            return cached
        try:
            token = await self.find(digest)
        except StoreError:
            return cached
        self._tokens.pop(digest, None)
        if token is None:
            return None
        cached = self._tokens[digest] = _CachedToken(now, token.is_worker_token)
        while len(self._tokens) > _MOST_KEYS:
            self._tokens.popitem(last=False)
        return cached


def _refusal(most: int, status: RateLimitStatus, at_once: int) -> Response:
    wait_s = max(1, math.ceil(status.next_s))
    headers = {**_headers(most, status), "Retry-After": str(wait_s)}
    message = f"too many requests: at most {most} in {WINDOW_S:.0f} s; try again in {wait_s} s"
    if status.left:
        message = f"at most {at_once} of your requests are answered at once; wait for some to end"
    return errors.problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", message, headers)


def _headers(most: int, status: RateLimitStatus) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(most),
        "RateLimit-Remaining": str(status.left),
        "RateLimit-Reset": str(math.ceil(status.reset_s)),
    }


def _secret(scope: Scope) -> str:
    """Return a request's token or session, without its scheme or cookie name."""
    headers = Headers(scope=scope)
    token = _token_in(headers.get("Authorization", ""))
    if scope["path"].startswith(f"{POPCORN}/"):
        return headers.get(POPCORN_TOKEN, "").strip() or token
    cookies = Request(scope).cookies
    return token or next((cookies[name] for name in sessions.COOKIES if name in cookies), "")


def _token_in(authorization: str) -> str:
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return value.strip() or scheme
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except ValueError:  # not ASCII, not base64, or not UTF-8
        return value
