"""`/api/v1`: our own interface, for programs and for our command line."""

from fastapi import APIRouter

from bot.domain.api.wire import PATH
from bot.frontends.web.routes.api import (
    admin,
    boards,
    checks,
    description,
    events,
    exports,
    me,
    moderation,
    publishing,
    running,
    standings,
    submissions,
    tasks,
)

router = APIRouter(prefix=PATH)
for _part in (
    boards, tasks, standings, publishing, checks, exports, submissions, events, running, me, admin,
    moderation, description,
):  # fmt: skip
    router.include_router(_part.router)
