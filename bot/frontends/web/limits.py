"""How many requests one token or one address may make, counted in this process; told in headers."""

import hashlib
import ipaddress
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.domain.agent import PATH as AGENTS
from bot.domain.api.wire import PATH
from bot.frontends.web.failures import problem

POPCORN = "/popcorn"
"""Where KernelBot's routes are."""
POPCORN_TOKEN = "X-Popcorn-Cli-Id"  # noqa: S105 - a header's name
"""The header in which its clients send their token."""
KNOWN = "token_is_known"
"""In a request's state once a route has found that its token is somebody's."""
WINDOW_S = 60.0
PER_WINDOW = 600
"""Requests of one token, or of one address without one; all of them at once, if need be."""
_LIMITED = (f"{PATH}/", f"{POPCORN}/", "/eval", "/sign-in")
_MOST_KEYS = 20_000
"""Whoever has all requests left is forgotten then; a flood of strangers fills no memory."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left to somebody, and after how many seconds there is one more, and all."""

    left: int
    next_s: float
    reset_s: float


@dataclass(slots=True)
class Limiter:
    """Counts by key: `most` at once, each given back after its share of the window."""

    most: int
    now: Callable[[], float] = time.monotonic
    _spent_until: dict[str, float] = field(default_factory=dict)

    def allowance(self, key: str) -> Allowance:
        """What this key may do now."""
        now = self.now()
        busy_s = max(0.0, self._spent_until.get(key, now) - now)
        left = math.floor((WINDOW_S - busy_s) / self._share_s + 1e-9)
        next_s = max(0.0, busy_s - WINDOW_S + self._share_s)
        return Allowance(max(0, left), next_s, busy_s)

    def count(self, key: str) -> Allowance:
        """Take one away; gives what is left."""
        now = self.now()
        if len(self._spent_until) >= _MOST_KEYS and key not in self._spent_until:
            self._forget(now)
        self._spent_until[key] = max(now, self._spent_until.get(key, now)) + self._share_s
        return self.allowance(key)

    @property
    def _share_s(self) -> float:
        return WINDOW_S / self.most

    def _forget(self, now: float) -> None:
        """Keep those that have made requests lately, or none where all have."""
        busy = {key: until for key, until in self._spent_until.items() if until > now}
        self._spent_until = busy if len(busy) < _MOST_KEYS else {}


@dataclass(slots=True)
class RateLimits:
    """The application behind the limits of `/api/v1`, `/popcorn`, `/eval` and of signing in.

    Agents have none.

    Tokens that are nobody's, and those that no route has looked at, are counted for their address
    as well: so nobody tries many, and none is a way round the limits. Who has a good one is not
    kept out by neighbours who have none.
    """

    app: ASGIApp
    limiter: Limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with when to come again."""
        if scope["type"] != "http" or not _is_limited(scope["path"]):
            await self.app(scope, receive, send)
            return
        key, guesses = _keys(scope)
        for each in (key, guesses):
            allowance = self.limiter.allowance(each)
            if allowance.left < 1:
                await _refusal(self.limiter.most, allowance)(scope, receive, send)
                return
        allowance = self.limiter.count(key)
        state = scope.setdefault("state", {})

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                unknown = bool(_sent(scope)) and not state.get(KNOWN)
                if unknown or message["status"] == HTTPStatus.UNAUTHORIZED:
                    self.limiter.count(guesses)
                MutableHeaders(scope=message).update(_headers(self.limiter.most, allowance))
            await send(message)

        await self.app(scope, receive, tell)


def _is_limited(path: str) -> bool:
    return path.startswith(_LIMITED) and not path.startswith(f"{AGENTS}/")


def _refusal(most: int, allowance: Allowance) -> Response:
    wait_s = max(1, math.ceil(allowance.next_s))
    headers = {**_headers(most, allowance), "Retry-After": str(wait_s)}
    words = f"too many requests: {most} are taken in {WINDOW_S:.0f} s; come again in {wait_s} s"
    return problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", words, headers)


def _headers(most: int, allowance: Allowance) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(most),
        "RateLimit-Remaining": str(allowance.left),
        "RateLimit-Reset": str(math.ceil(allowance.reset_s)),
    }


def _keys(scope: Scope) -> tuple[str, str]:
    """For what a request counts, and for what besides when its token is nobody's."""
    address = _address(scope)
    sent = _sent(scope)
    if not sent:
        return address, f"guesses of {address}"
    digest = hashlib.sha256(sent.encode("latin-1", "replace")).hexdigest()  # no secret is kept
    return digest, f"guesses of {address}"


def _sent(scope: Scope) -> str:
    """The token that the route looks at; another header beside it evades nothing."""
    headers = Headers(scope=scope)
    usual = headers.get("Authorization", "")
    return headers.get(POPCORN_TOKEN) or usual if scope["path"].startswith(f"{POPCORN}/") else usual


def _address(scope: Scope) -> str:
    """Who is connected; of IPv6 the network, of whose addresses a household has billions."""
    host = (scope.get("client") or ("", 0))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    # A door to both kinds of addresses sees those of IPv4 written as IPv6, all in one network.
    address = getattr(address, "ipv4_mapped", None) or address
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))
