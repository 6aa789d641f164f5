"""A quota of GPU time is exact to one job, even if many jobs are claimed at the same moment."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.domain.board import NewBoard, Viewer
from bot.domain.costs import Quota, QuotaKey, Unit, day_of
from bot.domain.errors import UserError
from bot.domain.job import Claim, Job
from bot.domain.submission import SubmissionRequest
from bot.ports import Store
from bot.services.submissions import submit
from bot.store.postgres import open_store
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore
from tests.doubles.stored import LEASE, Scene, make_evaluation, make_task, set_up

COPIES, RUSH = 3, 50
PRICES = {"L4": 0.01, "T4": 0.005}
LIMIT_S = make_task().limit_s(Mode.RANKED)
USED_S = 30.0
GPUS = ("L4", "T4")
KERNEL = b"def custom_kernel(data):\n    return data\n"


@pytest.fixture
async def copies(store_dsn: str | None, clock: ManualClock) -> AsyncIterator[list[Store]]:
    """The same data in several processes, each with its own connections."""
    if store_dsn is None:
        yield [MemoryStore(clock, PRICES)] * COPIES
        return
    async with AsyncExitStack() as stack:
        opening = [open_store(store_dsn, clock, PRICES) for _ in range(COPIES)]
        yield [await stack.enter_async_context(each) for each in opening]


async def rush(copies: list[Store], clock: ManualClock) -> Scene:
    """Many submissions of one person at the same moment, each on two GPU types."""
    scene = await set_up(copies[0])
    new = NewBoard("rush", GPUS, None, scene.ada.id)
    board = await copies[0].boards.publish(new, make_task(), "digest-2")
    scene = replace(scene, board=board)
    viewer = Viewer(scene.ada.id)
    request = SubmissionRequest(viewer, "a.py", KERNEL, Mode.RANKED, scene.board.name, GPUS)
    await asyncio.gather(*(submit(copies[n % COPIES], clock, request) for n in range(RUSH)))
    return scene


async def claim_at_once(copies: list[Store]) -> list[Job]:
    """The jobs of workers that claim at the same moment, in parallel for several GPU types."""
    claims = (
        copies[n % COPIES].jobs.claim(Claim(f"w{n}", {GPUS[n % 2]: 20}, LEASE)) for n in range(8)
    )
    return [job for found in await asyncio.gather(*claims) for job in found]


async def cheapest(store: Store, price: dict[str, float]) -> float:
    """The least that a waiting job may need."""
    backlog = await store.jobs.backlog()
    waiting = [gpu for gpu in GPUS if price[gpu] and backlog.get(gpu, {}).get("queued")]
    return min(price[gpu] * LIMIT_S for gpu in waiting)


@pytest.mark.parametrize(
    ("unit", "of"),
    [
        (Unit.SECONDS, "each person"),
        (Unit.DOLLARS, "each person"),
        (Unit.DOLLARS, "everyone"),
        (Unit.SECONDS, "board"),
        (Unit.DOLLARS, "GPU type"),
        (Unit.SECONDS, "person"),
    ],
)
async def test_of_fifty_claims_at_the_same_moment_none_can_exceed_the_quota(
    copies: list[Store], clock: ManualClock, *, unit: Unit, of: str
) -> None:
    scene, store = await rush(copies, clock), copies[0]
    price = PRICES if unit is Unit.DOLLARS else dict.fromkeys(GPUS, 1.0)
    most = 5.5 * LIMIT_S * price["L4"]
    if of == "GPU type":
        price, most = price | {"T4": 0.0}, most / 2  # it holds half of the jobs back
    key = QuotaKey(
        unit,
        each_person=of != "everyone",
        board=scene.board.id if of == "board" else None,
        gpu="L4" if of == "GPU type" else None,
        person=scene.ada.id if of == "person" else None,
    )
    await store.costs.set_quota(Quota(key, most))
    used, ran = 0.0, 0
    while running := await claim_at_once(copies):
        held = sum(price[job.gpu] * LIMIT_S for job in running)
        assert used + held <= most * (1 + 1e-9)
        assert used + held + await cheapest(store, price) > most  # not one more
        ends = (
            copies[n % COPIES].jobs.accept(
                job.id, job.fence, make_evaluation().model_copy(update={"wall_s": USED_S}), None
            )
            for n, job in enumerate(running)
        )
        assert all(await asyncio.gather(*ends))
        used += sum(price[job.gpu] * USED_S for job in running)
        ran += len(running)
        clock.advance(3)
    assert used + await cheapest(store, price) > most >= used
    counted = await store.costs.counted(day_of(clock.now()))
    assert sum(price[each.gpu] * each.used_s for each in counted) == pytest.approx(used)
    request = SubmissionRequest(
        Viewer(scene.ada.id), "a.py", KERNEL, Mode.RANKED, scene.board.name, GPUS
    )
    with pytest.raises(UserError, match="are left, and this run may need up to") as refused:
        await submit(store, clock, request)
    assert refused.value.code == "quota"
    assert len(await store.submissions.to(scene.board.id)) == RUSH
    assert 0 < ran < RUSH * len(GPUS)


async def test_killed_workers_free_the_time_that_they_reserved(
    copies: list[Store], clock: ManualClock
) -> None:
    await rush(copies, clock)
    await copies[0].costs.set_quota(Quota(QuotaKey(Unit.SECONDS), 4 * LIMIT_S))
    for _ in range(3):
        assert len(await claim_at_once(copies)) == 4
        clock.advance((LEASE + timedelta(seconds=1)).total_seconds())
        back = await asyncio.gather(*(each.jobs.requeue_expired() for each in copies))
        assert sum(back) == 4
        assert await copies[0].costs.counted(day_of(clock.now())) == ()
        clock.advance(60)
