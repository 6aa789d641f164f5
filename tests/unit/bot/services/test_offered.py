"""Tests of which GPU types there is a place to judge on."""

from datetime import timedelta

from bot.services.offered import offered_gpus
from runners.backends.fake import create
from tests.doubles.place import Place


async def test_the_runners_here_and_the_workers_that_live_are_counted(place: Place) -> None:
    runner = create(slots={"H100": 1, "CPU": 2})
    assert await offered_gpus(place.store, ()) == frozenset()
    assert await offered_gpus(place.store, (runner,)) == {"H100", "CPU"}
    await place.store.workers.announce("box", ("L4",), timedelta(seconds=30))
    assert await offered_gpus(place.store, (runner,)) == {"H100", "CPU", "L4"}
