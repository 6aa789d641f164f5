"""Who reads the names of workers."""

from datetime import timedelta

from bot.domain.board import Viewer
from bot.services.operations import NAMELESS, number_workers, workers_for
from bot.services.worker_tokens import create_worker_token
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)


async def test_admins_and_the_owner_of_a_worker_read_its_name(place: Place) -> None:
    bob = await place.person("bob")
    await create_worker_token(place.store, place.clock, bob, "box", lifetime=timedelta(days=1))
    for name in ("box:1", "worker-0123abcd"):
        await place.store.workers.announce(name, ("CPU",), LEASE)

    async def names(viewer: Viewer) -> list[str]:
        return [each.name for each in await workers_for(place.store, viewer)]

    assert await names(Viewer(place.ada, sees_all=True)) == ["box:1", "worker-0123abcd"]
    assert await names(Viewer(bob)) == ["box:1", "worker 2"]
    assert await names(Viewer(place.ada)) == ["worker 1", "worker 2"]


async def test_a_list_for_everybody_has_numbers_alone(place: Place) -> None:
    await place.store.workers.announce("box:1", ("CPU",), LEASE)
    (worker,) = number_workers(await place.store.workers.alive(), NAMELESS)
    assert (worker.name, worker.gpus) == ("worker 1", ("CPU",))
