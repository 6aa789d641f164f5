"""The web application: every router of the folder `routes`, and one handler of errors."""

from fastapi import FastAPI
from starlette.types import ASGIApp
from typing_extensions import override

from bot.frontends.web import routes
from bot.frontends.web.door import Door
from bot.frontends.web.failures import handle_failures
from bot.frontends.web.heads import Heads
from bot.frontends.web.limits import Limiter, RateLimits
from bot.frontends.web.own_places import OwnPlaces
from bot.frontends.web.request_ids import RequestIds
from runners import plugins


class _Application(FastAPI):
    """An application whose every answer has an id, that to a bug as well."""

    @override
    def build_middleware_stack(self) -> ASGIApp:
        return RequestIds(OwnPlaces(super().build_middleware_stack()))


def build(door: Door) -> FastAPI:
    """The application with every route there is."""
    app = _Application(title="Podium", openapi_url=None)
    app.state.door = door
    for name in plugins.names(routes):
        app.include_router(plugins.load(routes, name).router)
    handle_failures(app)
    if door.requests_per_minute:
        app.add_middleware(RateLimits, limiter=Limiter(door.requests_per_minute))
    app.add_middleware(Heads)
    return app
