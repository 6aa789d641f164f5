"""Forgets requests that ended a while ago, with their versions and sources."""

from datetime import timedelta

from bot.domain.ids import PersonId
from bot.frontends.web.compat.evaluation_server.accept import BOARD
from bot.ports import Store

KEPT = timedelta(hours=1)
"""How long the result of a request is there to be asked for."""
KEPT_LEAST = timedelta(seconds=300)
"""How long it is there although somebody has the old ones removed."""


async def upkeep(store: Store) -> None:
    """Forget what ended long ago, and stop what nobody has waited for in as long.

    Such a job has lost its server, and runs out of runners that could take it.
    """
    board = await store.boards.find(BOARD)
    if board is None:
        return
    for number in await store.requests.overdue(board.id, KEPT):
        await store.jobs.request_cancel(number)
    await forget(store)


async def forget(store: Store, age: timedelta = KEPT, person: PersonId | None = None) -> int:
    """Remove the requests of a person, or of everybody, that ended so long ago; gives how many."""
    board = await store.boards.find(BOARD)
    return 0 if board is None else await store.requests.forget(board.id, age, person)
