"""Signing in at a page with an account of the local Discord: both routes of OAuth 2 and one's user.

Against https://docs.discord.com/developers/topics/oauth2: the code is good once and for the address
that it was asked for, errors of the exchange have the form of RFC 6749.
"""

import base64
import secrets
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler
from yarl import URL

from tests.doubles.discord.model.people import User
from tests.doubles.discord.model.world import World

CODE_S = 60.0
_API = "/api/v10"


@dataclass(frozen=True)
class _Code:
    user: User
    back: str
    until: float


@dataclass
class OAuth:
    """One application's sign-ins; `agrees` is who sits at the browser, and nobody declines."""

    world: World
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    redirects: set[str] = field(default_factory=set)
    """The addresses that the application has registered."""
    agrees: User | None = None
    refusals: list[str] = field(default_factory=list)
    _codes: dict[str, _Code] = field(default_factory=dict)
    _tokens: dict[str, User] = field(default_factory=dict)

    @property
    def client_id(self) -> str:
        """The application's, which is its bot's as well."""
        return str(self.world.bot.id)

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/oauth2/authorize", self._authorize)
        app.router.add_post(f"{_API}/oauth2/token", self._exchange)
        app.middlewares.append(self._as_user)

    async def _authorize(self, request: web.Request) -> web.Response:
        asked = request.query
        if asked.get("client_id") != self.client_id or asked.get("response_type") != "code":
            return self._refuse(400, "invalid_request")
        back = asked.get("redirect_uri", "")
        if back not in self.redirects:
            return self._refuse(400, "invalid redirect_uri")
        if asked.get("scope") != "identify":
            return self._refuse(400, "invalid_scope")
        told = {"state": asked.get("state", "")}
        if self.agrees is None:
            told |= {"error": "access_denied"}
        else:
            told["code"] = secrets.token_urlsafe(20)
            until = self.world.clock.now() + CODE_S
            self._codes[told["code"]] = _Code(self.agrees, back, until)
        raise web.HTTPFound(URL(back).update_query(told))

    async def _exchange(self, request: web.Request) -> web.Response:
        said = request.headers.get("Authorization", "")
        pair = base64.b64encode(f"{self.client_id}:{self.secret}".encode()).decode()
        if said != f"Basic {pair}":
            return self._refuse(401, "invalid_client")
        form = await request.post()
        if form.get("grant_type") != "authorization_code":
            return self._refuse(400, "unsupported_grant_type")
        code = self._codes.pop(str(form.get("code")), None)
        good = code is not None and self.world.clock.now() < code.until
        if code is None or not good or form.get("redirect_uri") != code.back:
            return self._refuse(400, "invalid_grant")
        token = secrets.token_urlsafe(20)
        self._tokens[token] = code.user
        return web.json_response(
            {
                "token_type": "Bearer",
                "access_token": token,
                "expires_in": 604800,
                "refresh_token": secrets.token_urlsafe(20),
                "scope": "identify",
            }
        )

    @web.middleware
    async def _as_user(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer who one is to a person's token; the bot's own goes on to the other routes."""
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        if request.path != f"{_API}/users/@me" or kind != "Bearer":
            return await handler(request)
        user = self._tokens.get(token)
        if user is None:
            return web.json_response({"message": "401: Unauthorized", "code": 0}, status=401)
        return web.json_response(user.to_api())

    def _refuse(self, status: int, error: str) -> web.Response:
        self.refusals.append(error)
        return web.json_response({"error": error}, status=status)
