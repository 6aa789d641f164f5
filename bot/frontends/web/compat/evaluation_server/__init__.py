"""`/eval`: the evaluation server's surface, for its own client; see this folder's README."""

from fastapi import APIRouter
from starlette.routing import Route

from bot.frontends.web.compat.evaluation_server.surface import AT_ROOT, PREFIX, Surface

_PLACES = {PREFIX: PREFIX, f"{PREFIX}/{{path:path}}": PREFIX} | dict.fromkeys(AT_ROOT, "")

router = APIRouter(
    routes=[
        Route(path, Surface(prefix), include_in_schema=False) for path, prefix in _PLACES.items()
    ]
)
