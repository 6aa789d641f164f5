"""`/popcorn/...`: KernelBot's HTTP surface, for its unmodified command line popcorn-cli.

`POPCORN_API_URL=<base>/popcorn` and a personal token as `cli_id` in `~/.popcorn.yaml` are all that
it needs. Its routes are theirs, and so are the shapes; what is done is done by our own services.
"""

from fastapi import APIRouter

from bot.frontends.web.compat.kernelbot import (
    account,
    boards,
    elsewhere,
    ranking,
    submissions,
    submitting,
)
from bot.frontends.web.compat.kernelbot import routes as admin
from bot.frontends.web.limits import POPCORN

router = APIRouter(prefix=POPCORN, include_in_schema=False)
# `submitting` has a path of three free parts and takes what no other route took.
_PARTS = (account, boards, ranking, admin, submissions, submitting)
for part in _PARTS:
    router.include_router(part.router)
router.include_router(elsewhere.router_of([part.router for part in _PARTS]))
