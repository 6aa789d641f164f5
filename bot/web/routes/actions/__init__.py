"""The pages for acting: signing in, submitting, boards of one's own, one's account, admin."""

from fastapi import APIRouter

from bot.web.routes.actions import (
    account,
    admin,
    create_board,
    delete_board,
    edit_board,
    sign_in,
    submit,
)

router = APIRouter(include_in_schema=False)
for _each in (sign_in, submit, create_board, edit_board, delete_board, account, admin):
    router.include_router(_each.router)
