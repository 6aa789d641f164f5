"""`/api/v1`: Podium's own API, for programs and for its command line.

Each module of this folder with a `router` is a part of it; none is listed here.
"""

from bot.domain.api.base import PATH
from bot.web.routes import folder_router

router = folder_router(__name__, PATH)
