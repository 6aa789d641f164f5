"""The web application: every router of `compat` and `routes`, and one handler of errors."""

from fastapi import FastAPI
from starlette.types import ASGIApp
from typing_extensions import override

from bot.domain.accounts import Token
from bot.web import routes
from bot.web.context import Door
from bot.web.errors import handle_failures
from bot.web.heads import Heads
from bot.web.limits import Limiter, RateLimits
from bot.web.middleware import OwnPlaces
from bot.web.own_cookies import OwnCookies
from bot.web.request_ids import RequestIds
from bot.web.security_headers import Sealing
from bot.web.slices import slices
from runners import plugins


class _Application(FastAPI):
    """An application whose every answer has an id, that to a bug as well."""

    @override
    def build_middleware_stack(self) -> ASGIApp:
        door: Door = self.state.door
        sealed = Sealing(OwnPlaces(super().build_middleware_stack()), door.public_url)
        return RequestIds(OwnCookies(sealed))


def build(door: Door) -> FastAPI:
    """The application with every route there is."""
    app = _Application(title="Podium", openapi_url=None)
    app.state.door = door
    # The slices come first: the pages' `/admin/{deed}` would take `/admin/cleanup-jobs`.
    for each in (*slices(), *(plugins.load(routes, name) for name in plugins.names(routes))):
        app.include_router(each.router)
    handle_failures(app)
    if door.requests_per_minute:

        async def find(digest: str) -> Token | None:
            token = await door.store.tokens.find(digest)
            return token if token is not None and token.is_live(door.clock.now()) else None

        app.add_middleware(RateLimits, limiter=Limiter(door.requests_per_minute), find=find)
    app.add_middleware(Heads)
    return app
