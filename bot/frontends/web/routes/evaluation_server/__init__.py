"""`/eval`: the evaluation server's surface, for its own client; see this folder's README."""

from fastapi import APIRouter
from starlette.routing import Route

from bot.frontends.web.routes.evaluation_server.surface import PREFIX, Surface

_PATHS = (PREFIX, f"{PREFIX}/{{path:path}}")

router = APIRouter(routes=[Route(path, Surface(), include_in_schema=False) for path in _PATHS])
