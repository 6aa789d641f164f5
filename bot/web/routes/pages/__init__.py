"""The pages for reading: boards, submissions, people, the queue, and how to begin."""

from fastapi import APIRouter

from bot.web.routes.pages import (
    boards,
    comparison,
    docs,
    person,
    queue,
    submission,
    task,
)

router = APIRouter(include_in_schema=False)
for _each in (boards, task, submission, comparison, person, queue, docs):
    router.include_router(_each.router)
