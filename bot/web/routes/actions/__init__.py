"""The pages with forms: signing in, submitting, creating and editing boards, account, admin.

Each module of this folder with a `router` is one page or several; none is listed here.
"""

from bot.web.routes import folder_router

router = folder_router(__name__, in_schema=False)
