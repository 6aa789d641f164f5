"""What every way of a worker to the queue promises: the store's own, and that through a server."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pydantic import ValidationError

from bot.domain.api.workers import ClaimedJob, FreeSlots
from bot.domain.board import parse_pins
from bot.domain.errors import StoreError
from bot.domain.ids import JobId, SubmissionId
from bot.domain.job import GiveUpReason, JobState, LeasedJob, Notice, Topic
from bot.domain.publication import PublishRequest
from bot.ports import WorkerQueue
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.publishing.publish import publish
from runners.backends import fake
from runners.contract.evaluation import CPU, Progress
from runners.contract.task import Mode
from runners.contract.verdict import Stage
from tests.doubles.agents import SESSION, remote_queue
from tests.doubles.clock import ManualClock
from tests.doubles.dispatching import until
from tests.doubles.factories import NOON, make_capabilities, make_evaluation, make_task
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


@pytest.fixture(params=["store", "server"])
async def queue(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[WorkerQueue]:
    if request.param == "store":
        yield StoreQueue(place.store, DispatchConfig(worker=f"box:{SESSION}"))
        return
    async with remote_queue(place.store, place.clock) as remote:
        yield remote


async def test_a_claimed_job_brings_all_that_its_worker_needs(
    place: Place, queue: WorkerQueue
) -> None:
    submission = await place.submit(content=b"def custom_kernel(data): return 1\n")
    (job,) = await queue.claim({CPU: 3, "H200": 1})
    request = await queue.request(job)
    assert request is not None
    assert (job.submission, request.gpu, request.mode) == (submission.id, CPU, job.mode)
    assert request.source == "def custom_kernel(data): return 1\n"
    assert request.nonce is not None
    again = await queue.request(job)
    assert again is not None
    assert request.nonce != again.nonce
    assert await queue.claim({CPU: 1}) == ()


@pytest.mark.parametrize(
    ("why", "state", "error", "attempts"),
    [
        (GiveUpReason.FAILED, JobState.QUEUED, "boom", 1),
        (GiveUpReason.HOPELESS, JobState.FAILED, "boom", 1),
        (GiveUpReason.LOST, JobState.QUEUED, "boom", 1),
        (GiveUpReason.UNTOUCHED, JobState.QUEUED, None, 0),
        (GiveUpReason.CANCELLED, JobState.CANCELLED, None, 1),
    ],
)
async def test_each_ending_of_an_attempt_is_what_the_store_knows(
    place: Place,
    queue: WorkerQueue,
    why: GiveUpReason,
    state: JobState,
    error: str | None,
    attempts: int,
) -> None:
    submission = await place.submit()
    (job,) = await queue.claim({CPU: 1})
    assert await queue.give_up(job, why, error or "")
    assert not await queue.give_up(job, why, "late")
    (ended,) = await place.jobs(submission)
    assert (ended.state, ended.error, ended.attempt) == (state, error, attempts)


async def test_the_time_of_failed_attempts_is_part_of_the_next_request(
    place: Place, queue: WorkerQueue
) -> None:
    await place.submit()
    used: list[float] = []
    for why, used_s in (
        (GiveUpReason.FAILED, 1.5),
        (GiveUpReason.LOST, 50.0),
        (GiveUpReason.UNTOUCHED, 50.0),
        (GiveUpReason.FAILED, 2.25),
        (GiveUpReason.HOPELESS, 0.0),
    ):
        (job,) = await queue.claim({CPU: 1})
        request = await queue.request(job)
        assert request is not None
        used.append(request.used_s)
        assert await queue.give_up(job, why, "boom", used_s)
        place.clock.advance(60)
    assert used == [0, 1.5, 1.5, 1.5, 3.75]


async def test_an_accepted_evaluation_is_scored_by_the_task_that_was_asked(
    place: Place, queue: WorkerQueue
) -> None:
    submission = await place.submit()
    (job,) = await queue.claim({CPU: 1})
    request = await queue.request(job)
    assert request is not None
    evaluation = make_evaluation(mode=job.mode, request_id=request.request_id)
    assert await queue.accept(job, request, evaluation)
    (outcome,) = await place.store.results.outcomes([submission.id])
    assert outcome.score is not None


async def test_what_runners_offer_is_announced_under_the_workers_name(
    place: Place, queue: WorkerQueue
) -> None:
    await queue.announce(None)
    (worker,) = await place.store.workers.alive()
    assert (worker.name, worker.gpus) == (f"box:{SESSION}", None)
    offers = {
        "a": make_capabilities(gpus={"T4": 1}),
        "b": make_capabilities(gpus={"L4": 2, "H200": 0}),
    }
    await queue.announce(offers)
    (worker,) = await place.store.workers.alive()
    assert (worker.gpus, dict(worker.offers)) == (("L4", "T4"), offers)
    await queue.leave()
    assert await place.store.workers.alive() == ()


async def test_a_sign_of_life_tells_of_cancellation_and_leaves_out_what_is_lost(
    place: Place, queue: WorkerQueue
) -> None:
    first, second = await place.submit(), await place.submit()
    jobs = {job.submission: job for job in await queue.claim({CPU: 2})}
    place.clock.advance(31)
    await place.store.jobs.request_cancel(second.id)
    beats = await queue.heartbeat([jobs[second.id]])
    assert [(beat.job, beat.cancel_requested) for beat in beats] == [(jobs[second.id].id, True)]
    assert await place.store.jobs.requeue_expired() == 1
    assert await queue.heartbeat([jobs[first.id]]) == ()


@pytest.mark.parametrize("why", [None, "cancelled by an admin: it hangs"])
async def test_an_admins_reason_for_cancelling_is_stored_with_the_job(
    place: Place, queue: WorkerQueue, why: str | None
) -> None:
    stopped, failed = await place.submit(), await place.submit()
    held = {job.submission: job for job in await queue.claim({CPU: 2})}
    waiting = await place.submit()
    for each in (stopped, failed, waiting):
        assert await place.store.jobs.request_cancel(each.id, why) == 1
        assert await place.store.jobs.request_cancel(each.id, "later") == 0
    assert await queue.give_up(held[stopped.id], GiveUpReason.CANCELLED, "")
    assert await queue.give_up(held[failed.id], GiveUpReason.FAILED, "the runner broke")
    for each in (stopped, failed, waiting):
        (job,) = await place.jobs(each)
        assert (job.state, job.error) == (JobState.CANCELLED, why)


async def test_steps_and_calls_of_a_held_job_are_noted(place: Place, queue: WorkerQueue) -> None:
    submission = await place.submit()
    (job,) = await queue.claim({CPU: 1})
    assert await queue.attach(job, "fake/1")
    assert await queue.report_progress(job, Progress(stage=Stage.TEST, done=1, total=3, note="n"))
    (event,) = await place.store.jobs.latest(submission.id)
    assert (event.kind, event.body) == (Stage.TEST, {"done": 1, "total": 3, "note": "n"})
    (noted,) = await place.jobs(submission)
    assert noted.call == "fake/1"


async def test_a_lost_lease_refuses_every_deed_and_changes_nothing(
    place: Place, queue: WorkerQueue
) -> None:
    submission = await place.submit()
    (job,) = await queue.claim({CPU: 1})
    request = await queue.request(job)
    assert request is not None
    place.clock.advance(31)
    assert await place.store.jobs.requeue_expired() == 1
    place.clock.advance(3)
    other = await place.claim("other")
    evaluation = make_evaluation(mode=job.mode, request_id=request.request_id)
    assert not await queue.accept(job, request, evaluation)
    assert not await queue.attach(job, "fake/late")
    assert not await queue.report_progress(job, Progress(stage=Stage.TEST))
    assert not await queue.give_up(job, GiveUpReason.FAILED, "late")
    assert await place.jobs(submission) == (other,)
    assert await place.store.results.outcomes([submission.id]) == ()


async def test_a_notice_comes_when_work_does(place: Place, queue: WorkerQueue) -> None:
    await queue.announce({"a": make_capabilities(gpus={CPU: 1})})
    async with queue.notices() as notices, asyncio.timeout(10):
        later = asyncio.create_task(_submit_soon(place))
        heard = [notice async for notice in _first(notices)]
        await later
    assert heard == [Notice(Topic.READY, CPU)]


async def _submit_soon(place: Place) -> None:
    await asyncio.sleep(0.1)
    await place.submit()


async def _first(notices: AsyncIterator[Notice | None]) -> AsyncIterator[Notice]:
    async for notice in notices:
        if notice is not None:
            yield notice
            return


async def test_a_dispatcher_works_a_queue_off_and_obeys(place: Place, queue: WorkerQueue) -> None:
    runner = fake.create(slots={CPU: 2})
    config = DispatchConfig(heartbeat_s=0.05, poll_s=0.05, drain_s=0.2, progress_s=0.0)
    stop = asyncio.Event()
    work = asyncio.create_task(Dispatcher(queue, [runner], place.clock, config).run(stop))
    quick = [await place.submit() for _ in range(6)]
    stopped = await place.submit(content=b"# fake: seconds=60\n")
    endless = await place.submit(content=b"# fake: seconds=60\n")

    async def quick_are_done() -> bool:
        states = [(await place.jobs(each))[0].state for each in quick]
        return all(state is JobState.SUCCEEDED for state in states)

    async def is_cancelled() -> bool:
        return (await place.jobs(stopped))[0].state is JobState.CANCELLED

    async def both_run() -> bool:
        found = [(await place.jobs(each))[0].call for each in (stopped, endless)]
        return all(call is not None for call in found)

    await until(quick_are_done)
    await until(both_run)
    await place.store.jobs.request_cancel(stopped.id)
    await until(is_cancelled)
    stop.set()
    await asyncio.wait_for(work, 5)
    (given_up,) = await place.jobs(endless)
    assert (given_up.state, given_up.error) == (JobState.QUEUED, "the worker was stopped")
    assert await place.store.workers.alive() == ()
    await runner.aclose()


async def test_a_database_that_is_away_is_an_error_to_try_again_after(
    place: Place, queue: WorkerQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreError("away")

    monkeypatch.setattr(place.store.jobs, "claim", away)
    with pytest.raises(StoreError, match=r"away|unavailable"):
        await queue.claim({CPU: 1})


OFFERS = {"local_process": make_capabilities(), "modal_app": make_capabilities()}
PINNED = {"test": "", "box": "box", "modal": "box modal", "other": "modal"}


async def pinned_jobs(place: Place) -> dict[SubmissionId, str]:
    """A ranked submission to a board of each pool, and that pool."""
    made = {}
    for name, pool in PINNED.items():
        task, pins = make_task(name=name), parse_pins((pool,))
        request = PublishRequest(place.ada, pins=pins)
        await publish(place.store, place.clock, request, task)
        made[(await place.submit(board=name)).id] = pool
    return made


async def test_a_pinned_job_goes_to_a_worker_with_room_in_its_pool(
    place: Place, queue: WorkerQueue
) -> None:
    made = await pinned_jobs(place)
    await queue.announce(OFFERS)
    claimed = await queue.claim({CPU: 4}, {CPU: {"local_process": 0, "modal_app": 3}})
    assert {made[job.submission]: job.pool for job in claimed} == {"": "", "box modal": "box modal"}
    (job,) = await queue.claim({CPU: 4}, {CPU: {"local_process": 1, "modal_app": 2}})
    assert (made[job.submission], job.pool) == ("box", "box")


async def test_an_older_agent_has_only_what_its_one_runner_may_time(place: Place) -> None:
    made = await pinned_jobs(place)
    async with remote_queue(place.store, place.clock) as queue:
        await queue.announce(OFFERS)
        assert [made[job.submission] for job in await queue.claim({CPU: 4})] == [""]
        await queue.announce({"modal_app": make_capabilities()})
        (job,) = await queue.claim({CPU: 4})
    assert (made[job.submission], job.pool) == ("box modal", "")


async def test_the_words_for_an_older_agent_and_for_an_older_server_have_no_pool() -> None:
    job = LeasedJob(JobId(1), SubmissionId(2), CPU, Mode.RANKED, 3, None, NOON, "box")
    keys = {"id", "submission", "gpu", "mode", "fence", "call", "created_at"}
    assert set(json.loads(ClaimedJob.of(job, with_pool=False).model_dump_json())) == keys
    told = ClaimedJob.of(job, with_pool=True)
    assert ClaimedJob.model_validate_json(told.model_dump_json()).leased == job
    assert json.loads(FreeSlots(slots={CPU: 1}).model_dump_json()) == {"slots": {CPU: 1}}


@pytest.mark.parametrize(
    "runners",
    [{"r" * 101: 1}, {"local": -1}, {"local": 1025}, {f"r{number}": 1 for number in range(17)}],
)
def test_a_claim_for_more_runners_or_longer_names_than_are_sensible_is_refused(
    runners: dict[str, int],
) -> None:
    good = {"r" * 100: 1024, **{f"r{number}": 0 for number in range(15)}}
    assert FreeSlots(slots={CPU: 1}, runners={CPU: good}).runners == {CPU: good}
    with pytest.raises(ValidationError):
        FreeSlots(slots={CPU: 1}, runners={CPU: runners})
