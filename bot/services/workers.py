"""The live workers, with names for those who may know them."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from bot.domain.board import Viewer
from bot.domain.job import Worker
from bot.ports import Store

NAMELESS: frozenset[str] = frozenset()
"""The labels whose workers are named in a list that everyone sees: none."""


async def workers_for(store: Store, viewer: Viewer) -> tuple[Worker, ...]:
    """Return the live workers by name, or numbered if the viewer may not know the name.

    Admins know every name; the creator of a worker's token knows that worker's name.
    """
    alive = await store.workers.alive()
    if viewer.sees_all:
        return alive
    tokens = await store.tokens.of_workers() if alive else ()
    return numbered(alive, {each.label for each in tokens if each.person == viewer.person})


def numbered(workers: Sequence[Worker], known: AbstractSet[str]) -> tuple[Worker, ...]:
    """Replace names by `worker N`, except those whose token has a `known` label."""
    return tuple(
        each if _label(each) in known else replace(each, name=f"worker {number}")
        for number, each in enumerate(workers, 1)
    )


def _label(worker: Worker) -> str:
    """Return the token's label; a remote worker is named label, colon, unique part."""
    return worker.name.partition(":")[0] if ":" in worker.name else ""
