"""The pages for acting: signing in, submitting, boards of one's own, one's account, admin.

Each module of this folder that has a `router` is one; none is named here.
"""

from fastapi import APIRouter

from runners import plugins

router = APIRouter(include_in_schema=False)
for _page in plugins.load_all(__name__):
    if hasattr(_page, "router"):
        router.include_router(_page.router)
