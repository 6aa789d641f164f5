"""Requests are forgotten an hour after their end, and by no restart before."""

import asyncio

from bot.domain.job import JobState
from bot.services.evaluation_server.accept import accept
from bot.services.evaluation_server.follow import wait
from bot.services.evaluation_server.forget import forget, upkeep
from bot.services.recover import recover
from tests.doubles.clock import ManualClock
from tests.doubles.eval_server import eval_server, make_request
from tests.doubles.memory_store import MemoryStore


async def test_nothing_is_forgotten_where_nothing_was_asked(memory_store: MemoryStore) -> None:
    assert await forget(memory_store) == 0
    await upkeep(memory_store)


async def test_the_upkeep_forgets_what_ended_an_hour_ago(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock) as server:
        made = await accept(memory_store, clock, ada.id, make_request())
        until = asyncio.get_running_loop().time() + 10
        await wait(server.store, made.id, until, lambda: False)
    stop = asyncio.Event()
    stop.set()
    for seconds, there in ((3599, True), (2, False)):
        clock.advance(seconds)
        stop = asyncio.Event()
        upkeep = asyncio.create_task(recover(memory_store, stop, every_s=0.01))
        await asyncio.sleep(0.05)
        stop.set()
        await upkeep
        assert (await memory_store.submissions.get(made.id) is not None) is there


async def test_a_job_whose_server_is_gone_does_not_wait_for_ever(
    memory_store: MemoryStore, clock: ManualClock
) -> None:
    """Of the evaluation server's such jobs were "submitted" until its end."""
    ada = await memory_store.people.ensure("local:ada", "Ada")
    async with eval_server(memory_store, clock):
        await memory_store.moderation.pause_pool("CPU", "away")
        made = await accept(memory_store, clock, ada.id, make_request())
        for seconds, state in ((3599, JobState.QUEUED), (2, JobState.CANCELLED)):
            clock.advance(seconds)
            await upkeep(memory_store)
            (job,) = await memory_store.jobs.of(made.id)
            assert job.state is state
        await upkeep(memory_store)
        assert await memory_store.submissions.get(made.id) is not None
