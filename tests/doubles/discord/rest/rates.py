"""Rate limits: a window per route and major parameter, one for renames, one for all requests."""

import zlib
from dataclasses import dataclass

from tests.doubles.discord.clock import Clock
from tests.doubles.discord.errors import RateLimitedError
from tests.doubles.discord.limits import CHANNEL, RENAMES, Rates

GLOBAL_WINDOW_S = 1.0
MAJOR = ("channel_id", "guild_id", "webhook_id", "webhook_token")


@dataclass
class Window:
    """A fixed window, as the response headers describe it."""

    begin: float
    taken: int = 0


@dataclass(frozen=True)
class LimitCheck:
    """Whether a window admits one more request, and when it ends."""

    granted: bool
    left: int
    reset: float


@dataclass(frozen=True)
class Request:
    """The parts of a request on which its limits depend."""

    method: str
    path: str
    names: dict[str, str]
    body: object

    @property
    def major(self) -> str:
        return "/".join(self.names[name] for name in MAJOR if name in self.names)


class RateLimits:
    """Counts requests; `scale` 0 switches everything off."""

    def __init__(self, rates: Rates, global_rate: int, clock: Clock) -> None:
        self.rates, self._global_rate, self._clock = rates, global_rate, clock
        self._windows: dict[str, Window] = {}

    def forget(self) -> None:
        self._windows.clear()

    def _count(self, key: str, count: int, seconds: float) -> LimitCheck:
        now = self._clock.elapsed()
        window = self._windows.setdefault(key, Window(now))
        if now >= window.begin + seconds:
            window.begin, window.taken = now, 0
        granted = window.taken < count
        window.taken += granted
        return LimitCheck(granted, count - window.taken, window.begin + seconds - now)

    def check(self, request: Request) -> dict[str, str]:
        """Return headers for the response, or raise a 429. Interaction callbacks have no limit."""
        if not self.rates.scale or request.path.startswith("/interactions"):
            return {}
        if not request.path.startswith("/webhooks"):
            self._check_global()
        if request.path == CHANNEL and isinstance(request.body, dict) and "name" in request.body:
            self._check_rename(request)
        return self._check_route(request)

    def _check_global(self) -> None:
        check = self._count("global", self._global_rate, GLOBAL_WINDOW_S)
        if not check.granted:
            raise RateLimitedError(check.reset, "global")

    def _check_rename(self, request: Request) -> None:
        count, seconds = RENAMES
        check = self._count(f"rename:{request.major}", count, seconds * self.rates.scale)
        if not check.granted:
            raise RateLimitedError(check.reset, "shared")

    def _check_route(self, request: Request) -> dict[str, str]:
        count, seconds = self.rates.of(request.method, request.path)
        bucket = f"{zlib.crc32(f'{request.method} {request.path}'.encode()):08x}"
        check = self._count(f"{bucket}:{request.major}", count, seconds)
        headers = {
            "X-RateLimit-Limit": str(count),
            "X-RateLimit-Remaining": str(max(check.left, 0)),
            "X-RateLimit-Bucket": bucket,
            "X-RateLimit-Reset": f"{self._clock.now() + check.reset:.3f}",
            "X-RateLimit-Reset-After": f"{check.reset:.3f}",
        }
        if not check.granted:
            error = RateLimitedError(check.reset, "user")
            error.headers = headers
            raise error
        return headers


def refused_headers(error: RateLimitedError) -> dict[str, str]:
    headers = {"Retry-After": str(int(error.wait) + 1), "X-RateLimit-Scope": error.scope}
    if error.scope == "global":
        headers["X-RateLimit-Global"] = "true"
    return error.headers | headers
