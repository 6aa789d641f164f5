"""How busy a GPU type is, as popcorn-cli shows it."""

from contextlib import suppress

from bot.domain.errors import StoreError
from bot.ports import Store
from bot.services.pools import Pool, pools
from runners.contract.gpus import gpu_type

Json = dict[str, object]
RUNNER = "Podium"


async def runner_queue(store: Store, gpu: str) -> Json:
    """The jobs of a GPU type, and how many workers take them."""
    gpu = gpu_type(gpu)
    pool = next((each for each in await pools(store) if each.gpu == gpu), None)
    if pool is None:
        if not any(gpu in board.gpus for board in await store.boards.all()):
            return _unknown(gpu)
        pool = Pool(gpu, queued=0, running=0, workers=0, paused=None)
    serves = bool(pool.workers) and pool.paused is None
    return {
        "runner": RUNNER,
        "gpu": gpu,
        "queued_jobs": pool.queued,
        "running_jobs": pool.running,
        "available_runners": pool.workers,
        "status": "available" if serves else "unavailable",
        "error": pool.paused,
    }


def _unknown(gpu: str) -> Json:
    return {
        "runner": "unknown",
        "gpu": gpu,
        "queued_jobs": None,
        "running_jobs": None,
        "available_runners": None,
        "status": "unavailable",
        "error": "unknown gpu",
    }


async def queue_where_known(store: Store, gpu: str) -> Json | None:
    """The same, or None when it cannot be read just now: nothing hangs on it."""
    with suppress(StoreError):
        return await runner_queue(store, gpu)
    return None
