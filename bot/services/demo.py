"""Removes what `podium demo` put into a data folder, and nothing of other people."""

from dataclasses import dataclass
from datetime import timedelta

from bot.domain.accounts import DEMO, Person
from bot.domain.board import Board
from bot.domain.ids import PersonId
from bot.ports import Store
from bot.services.audit import audited

_OWNER = f"{DEMO}:podium"
_NOW = timedelta(seconds=-1)
"""An age limit, below zero so that it includes what ends at this very moment."""


@dataclass(frozen=True, slots=True)
class Removed:
    """The boards that were deleted, and those kept because other people have submitted to them."""

    boards: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


async def demo_owner(store: Store) -> Person:
    """Return the owner of the demo's boards."""
    return await store.people.ensure(_OWNER, "podium demo")


async def remove_demo(store: Store) -> Removed:
    """Delete the demo's boards and kernels; of a board that others use, only the demo's kernels.

    UserError `moved` when somebody submits to one of them meanwhile: nothing of it is deleted.
    """
    owner = await store.people.find(_OWNER)
    if owner is None:
        return Removed()
    boards = [each for each in await store.boards.all() if each.creator == owner.id]
    gone = {board.name: await _removed(store, board, owner) for board in boards}
    return Removed(
        tuple(name for name, all_of_it in gone.items() if all_of_it),
        tuple(name for name, all_of_it in gone.items() if not all_of_it),
    )


async def _removed(store: Store, board: Board, owner: Person) -> bool:
    submitted = await store.submissions.to(board.id)
    made_up = await _made_up(store, {each.person for each in submitted})
    if all(each.person in made_up for each in submitted):
        subject, reason = f"board {board.name}", "the demo's own"
        async with audited(store, owner.id, "delete-board", subject, reason=reason) as tx:
            await tx.boards.delete(board.id, len(submitted))
        return True
    for each in submitted:
        if each.person in made_up:
            await store.jobs.request_cancel(each.id)
    for person in made_up:
        await store.requests.forget(board.id, _NOW, person)
    return False


async def _made_up(store: Store, people: set[PersonId]) -> frozenset[PersonId]:
    found = [await store.people.get(each) for each in people]
    made_up = (each for each in found if each is not None and each.identity.startswith(f"{DEMO}:"))
    return frozenset(each.id for each in made_up)
