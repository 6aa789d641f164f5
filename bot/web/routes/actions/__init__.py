"""The pages with forms: signing in, submitting, own boards, account, admin.

Each module of this folder with a `router` is one; none is listed here.
"""

from fastapi import APIRouter

from runners import plugins

router = APIRouter(include_in_schema=False)
for _page in plugins.load_all(__name__):
    if hasattr(_page, "router"):
        router.include_router(_page.router)
