"""Signing in at a web page with a Discord account: the OAuth 2 routes, and `/users/@me`.

Follows https://docs.discord.com/developers/topics/oauth2. A code is valid once, and only for the
address for which it was requested. Errors of the exchange have the form of RFC 6749.
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
    """The sign-ins of one application; the user `agrees` consents, None means a refusal."""

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
        """The id of the application, and of its bot."""
        return str(self.world.bot.id)

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/oauth2/authorize", self._authorize)
        app.router.add_post(f"{_API}/oauth2/token", self._exchange)
        app.middlewares.append(self._as_user)

    async def _authorize(self, request: web.Request) -> web.Response:
        query = request.query
        if query.get("client_id") != self.client_id or query.get("response_type") != "code":
            return self._refuse(400, "invalid_request")
        back = query.get("redirect_uri", "")
        if back not in self.redirects:
            return self._refuse(400, "invalid redirect_uri")
        if query.get("scope") != "identify":
            return self._refuse(400, "invalid_scope")
        result = {"state": query.get("state", "")}
        if self.agrees is None:
            result |= {"error": "access_denied"}
        else:
            result["code"] = secrets.token_urlsafe(20)
            until = self.world.clock.now() + CODE_S
            self._codes[result["code"]] = _Code(self.agrees, back, until)
        raise web.HTTPFound(URL(back).update_query(result))

    async def _exchange(self, request: web.Request) -> web.Response:
        authorization = request.headers.get("Authorization", "")
        pair = base64.b64encode(f"{self.client_id}:{self.secret}".encode()).decode()
        if authorization != f"Basic {pair}":
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
        """Answer `/users/@me` for a person's token; pass every other request on."""
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
