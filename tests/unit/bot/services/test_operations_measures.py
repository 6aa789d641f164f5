"""Tests of what is measured."""

from datetime import timedelta

from bot.services.operations import GpuMetrics, read_metrics
from runners.contract.runner import Capabilities, OutOfService
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import make_place

LEASE = timedelta(seconds=30)


async def test_a_pool_is_measured_whole(memory_store: MemoryStore, clock: ManualClock) -> None:
    place = await make_place(memory_store, clock)
    for _ in range(3):
        await place.submit()
    clock.advance(12)
    await place.claim()
    lost = OutOfService(gpu="H100", card="1", why="too hot")
    offer = Capabilities(harness_version="1", gpus={"CPU": 2, "H100": 7}, out_of_service=(lost,))
    for worker in ("a", "b"):
        await memory_store.workers.announce(worker, ["CPU", "H100"], LEASE, {"local": offer})
    await memory_store.moderation.pause_gpu("H100", "new driver")
    found = await read_metrics(memory_store, clock)
    assert found.gpus == (
        GpuMetrics("CPU", queued=2, running=1, waits_s=12.0, slots=4),
        GpuMetrics("H100", slots=14, out_of_service=2, paused=True),
    )
    assert (found.workers, found.paused, found.lost_leases) == (2, False, {})
