"""What an agent does when its server will not have it any more, in the midst of its work."""

import asyncio

import pytest

from bot.domain.errors import UserError
from bot.domain.job import JobState
from bot.remote.worker import RemoteQueue
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.worker_tokens import revoke_worker_token
from runners.backends import fake
from runners.contract.evaluation import CPU
from runners.contract.runner import CallId, RunnerError
from tests.doubles.agents import LEASE, connecting, make_door, make_token
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import until
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

CONFIG = DispatchConfig(heartbeat_s=0.05, poll_s=0.05, progress_s=0.0)


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def test_an_agent_whose_token_is_revoked_stops_its_work_and_says_so(place: Place) -> None:
    runner = fake.create()
    submission = await place.submit(content=b"# fake: seconds=60\n")
    token = await make_token(place.store, place.clock)

    async def runs() -> bool:
        return (await place.jobs(submission))[0].call is not None

    async with connecting(make_door(place.store, place.clock), token) as connection:
        queue = RemoteQueue(connection, LEASE)
        work = asyncio.create_task(
            Dispatcher(queue, [runner], place.clock, CONFIG).run(asyncio.Event())
        )
        await until(runs)
        await revoke_worker_token(place.store, place.ada, "box")
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(work, 10)
    assert {type(each) for each in raised.value.exceptions} == {UserError}
    (job,) = await place.jobs(submission)
    assert job.state is JobState.RUNNING  # until its lease runs out
    assert job.call is not None
    with pytest.raises(RunnerError):
        await runner.wait(CallId(job.call.partition("/")[2]), lambda _: None)
    await runner.aclose()


async def test_a_claim_is_of_those_types_that_are_free(place: Place) -> None:
    await place.submit()
    token = await make_token(place.store, place.clock)
    async with connecting(make_door(place.store, place.clock), token) as connection:
        queue = RemoteQueue(connection, LEASE)
        assert await queue.claim({"H200": 8}) == ()
        (job,) = await queue.claim({CPU: 8})
        assert job.gpu == CPU
