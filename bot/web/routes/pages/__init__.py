"""The pages for reading: boards, submissions, people, the queue, and the documentation.

Each module of this folder with a `router` is one page or several; none is listed here.
"""

from bot.web.routes import folder_router

router = folder_router(__name__, in_schema=False)
