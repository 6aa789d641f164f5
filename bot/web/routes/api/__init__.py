"""`/api/v1`: our own interface, for programs and for our command line."""

from fastapi import APIRouter

from bot.domain.api.base import PATH
from bot.web.routes.api import (
    account,
    admin,
    boards,
    exports,
    openapi,
    publishing,
    queue,
    standings,
    submissions,
)

router = APIRouter(prefix=PATH)
for _part in (boards, standings, publishing, exports, submissions, queue, account, admin, openapi):
    router.include_router(_part.router)
