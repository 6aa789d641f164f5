"""`/api/v1`: our own interface, for programs and for our command line."""

from fastapi import APIRouter

from bot.domain.api.base import PATH
from bot.web.routes.api import (
    account,
    admin,
    boards,
    checks,
    events,
    exports,
    moderation,
    openapi,
    publishing,
    queue,
    standings,
    submissions,
    tasks,
)

router = APIRouter(prefix=PATH)
for _part in (
    boards, tasks, standings, publishing, checks, exports, submissions, events, queue, account, admin,
    moderation, openapi,
):  # fmt: skip
    router.include_router(_part.router)
