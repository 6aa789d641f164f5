"""How busy a GPU type is, as popcorn-cli shows it."""

from contextlib import suppress

from bot.domain.errors import StoreError
from bot.ports import Store
from bot.services.pools import Pool, pools

Json = dict[str, object]
RUNNER = "Podium"


async def runner_queue(store: Store, gpu: str) -> Json:
    """The jobs of a GPU type, and how many workers take them."""
    idle = Pool(gpu, queued=0, running=0, workers=0, paused=None)
    pool = next((each for each in await pools(store) if each.gpu == gpu), idle)
    status = "online" if pool.workers else "offline"
    return {
        "runner": RUNNER,
        "gpu": gpu,
        "queued_jobs": pool.queued,
        "running_jobs": pool.running,
        "available_runners": pool.workers,
        "status": status if pool.paused is None else "paused",
        "error": pool.paused,
    }


async def queue_where_known(store: Store, gpu: str) -> Json | None:
    """The same, or None when it cannot be read just now: nothing hangs on it."""
    with suppress(StoreError):
        return await runner_queue(store, gpu)
    return None
