"""Rate limits: a window per route and major parameter, one for the renames, one for all."""

import zlib
from dataclasses import dataclass

from tests.doubles.discord.clock import Clock
from tests.doubles.discord.errors import RateLimitedError
from tests.doubles.discord.limits import CHANNEL, RENAMES, Rates

GLOBAL_WINDOW_S = 1.0
MAJOR = ("channel_id", "guild_id", "webhook_id", "webhook_token")


@dataclass
class Window:
    """A fixed window, as the headers promise it."""

    begin: float
    taken: int = 0


@dataclass(frozen=True)
class Taken:
    """What came of asking for one more request."""

    granted: bool
    left: int
    reset: float


@dataclass(frozen=True)
class Request:
    """What the limits look at."""

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

    def _take(self, key: str, count: int, seconds: float) -> Taken:
        now = self._clock.elapsed()
        window = self._windows.setdefault(key, Window(now))
        if now >= window.begin + seconds:
            window.begin, window.taken = now, 0
        granted = window.taken < count
        window.taken += granted
        return Taken(granted, count - window.taken, window.begin + seconds - now)

    def check(self, request: Request) -> dict[str, str]:
        """The headers of the answer; raises 429. Interaction callbacks have no limit."""
        if not self.rates.scale or request.path.startswith("/interactions"):
            return {}
        if not request.path.startswith("/webhooks"):
            self._check_global()
        if request.path == CHANNEL and isinstance(request.body, dict) and "name" in request.body:
            self._check_rename(request)
        return self._check_route(request)

    def _check_global(self) -> None:
        taken = self._take("global", self._global_rate, GLOBAL_WINDOW_S)
        if not taken.granted:
            raise RateLimitedError(taken.reset, "global")

    def _check_rename(self, request: Request) -> None:
        count, seconds = RENAMES
        taken = self._take(f"rename:{request.major}", count, seconds * self.rates.scale)
        if not taken.granted:
            raise RateLimitedError(taken.reset, "shared")

    def _check_route(self, request: Request) -> dict[str, str]:
        count, seconds = self.rates.of(request.method, request.path)
        bucket = f"{zlib.crc32(f'{request.method} {request.path}'.encode()):08x}"
        taken = self._take(f"{bucket}:{request.major}", count, seconds)
        headers = {
            "X-RateLimit-Limit": str(count),
            "X-RateLimit-Remaining": str(max(taken.left, 0)),
            "X-RateLimit-Bucket": bucket,
            "X-RateLimit-Reset": f"{self._clock.now() + taken.reset:.3f}",
            "X-RateLimit-Reset-After": f"{taken.reset:.3f}",
        }
        if not taken.granted:
            error = RateLimitedError(taken.reset, "user")
            error.headers = headers
            raise error
        return headers


def refused_headers(error: RateLimitedError) -> dict[str, str]:
    headers = {"Retry-After": str(int(error.wait) + 1), "X-RateLimit-Scope": error.scope}
    if error.scope == "global":
        headers["X-RateLimit-Global"] = "true"
    return error.headers | headers
