"""`/api/v1`: our own API, for programs and for our command line.

Each module of this folder with a `router` is a part of it; none is listed here.
"""

from fastapi import APIRouter

from bot.domain.api.base import PATH
from runners import plugins

router = APIRouter(prefix=PATH)
for _part in plugins.load_all(__name__):
    if hasattr(_part, "router"):
        router.include_router(_part.router)
