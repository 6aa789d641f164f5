"""The pages for acting: signing in, submitting, boards of one's own, one's account, admin."""

from fastapi import APIRouter

from bot.frontends.web.routes.acting import (
    admin,
    creating,
    deeds,
    editing,
    ending,
    entry,
    personal,
    submitting,
)

router = APIRouter(include_in_schema=False)
for _each in (entry, submitting, deeds, creating, editing, ending, personal, admin):
    router.include_router(_each.router)
