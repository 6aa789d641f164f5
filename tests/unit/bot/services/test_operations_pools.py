from datetime import timedelta

from bot.services.operations import GpuQueue, gpu_queues
from tests.doubles.place import Place

LEASE = timedelta(seconds=30)


async def test_each_gpu_with_jobs_workers_or_a_pause_is_told_of(place: Place) -> None:
    await place.submit()
    await place.submit()
    await place.claim()
    await place.store.workers.announce("box", ("CPU", "L4"), LEASE)
    await place.store.workers.announce("new", None, LEASE)
    await place.store.moderation.pause_gpu("H100", "hot")
    assert await gpu_queues(place.store) == (
        GpuQueue("CPU", queued=1, running=1, workers=1, paused=None),
        GpuQueue("H100", queued=0, running=0, workers=0, paused="hot"),
        GpuQueue("L4", queued=0, running=0, workers=1, paused=None),
    )
