"""The pages for reading: boards, submissions, people, the queue, and the documentation.

Each module of this folder with a `router` is one; none is listed here.
"""

from fastapi import APIRouter

from runners import plugins

router = APIRouter(include_in_schema=False)
for _page in plugins.load_all(__name__):
    router.include_router(_page.router)
