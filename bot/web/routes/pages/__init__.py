"""The pages for reading: boards, submissions, people, the queue, and how to begin.

Each module of this folder that has a `router` is one; none is named here.
"""

from fastapi import APIRouter

from runners import plugins

router = APIRouter(include_in_schema=False)
for _page in plugins.load_all(__name__):
    router.include_router(_page.router)
