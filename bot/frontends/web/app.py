"""The web application: every router of the folder `routes`, and one handler of errors."""

from fastapi import FastAPI

from bot.frontends.web import routes
from bot.frontends.web.door import Door
from bot.frontends.web.failures import handle_failures
from runners import plugins


def build(door: Door) -> FastAPI:
    """The application with every route there is."""
    app = FastAPI(title="Podium", openapi_url=None)
    app.state.door = door
    for name in plugins.names(routes):
        app.include_router(plugins.load(routes, name).router)
    handle_failures(app)
    return app
