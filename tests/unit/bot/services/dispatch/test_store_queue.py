from bot.domain.job import Ending, JobState
from bot.services.dispatch import DispatchConfig, StoreQueue
from bot.services.dispatch.store_queue import StoreQueue as Defined
from runners.contract.evaluation import CPU
from tests.doubles.factories import make_capabilities, make_evaluation
from tests.doubles.place import Place


def queue(place: Place, worker: str = "w") -> StoreQueue:
    return StoreQueue(place.store, DispatchConfig(worker=worker))


async def test_a_claimed_job_brings_all_that_its_worker_needs(place: Place) -> None:
    assert Defined is StoreQueue
    submission = await place.submit(content=b"def custom_kernel(data): return 1\n")
    (job,) = await queue(place).claim({CPU: 3})
    request = await queue(place).request(job)
    assert (job.submission, request.gpu, request.mode) == (submission.id, CPU, job.mode)
    assert request.source == "def custom_kernel(data): return 1\n"
    assert request.nonce is not None
    assert request.nonce != (await queue(place).request(job)).nonce


async def test_each_ending_of_an_attempt_is_what_the_store_knows(place: Place) -> None:
    wanted = {
        Ending.FAILED: (JobState.QUEUED, "boom", 1),
        Ending.HOPELESS: (JobState.FAILED, "boom", 1),
        Ending.LOST: (JobState.QUEUED, "boom", 1),
        Ending.UNTOUCHED: (JobState.QUEUED, None, 0),
        Ending.CANCELLED: (JobState.CANCELLED, None, 1),
    }
    for why, (state, error, attempts) in wanted.items():
        person = await place.person(why)
        submission = await place.submit(person)
        (job,) = await queue(place).claim({CPU: 1})
        assert await queue(place).give_up(job, why, "" if error is None else error)
        assert not await queue(place).give_up(job, why, "late")
        (ended,) = await place.jobs(submission)
        assert (ended.state, ended.error, ended.attempt) == (state, error, attempts)
        await place.store.jobs.request_cancel(submission.id)


async def test_an_accepted_evaluation_is_scored_by_the_task_that_was_asked(place: Place) -> None:
    submission = await place.submit()
    (job,) = await queue(place).claim({CPU: 1})
    request = await queue(place).request(job)
    evaluation = make_evaluation(mode=job.mode, request_id=request.request_id)
    assert await queue(place).accept(job, request, evaluation)
    assert not await queue(place).accept(job, request, evaluation)
    (outcome,) = await place.store.results.outcomes([submission.id])
    assert outcome.score is not None


async def test_what_runners_offer_is_announced_under_the_workers_name(place: Place) -> None:
    await queue(place).announce(None)
    (worker,) = await place.store.workers.alive()
    assert (worker.name, worker.gpus) == ("w", None)
    offers = {"a": make_capabilities(gpus={"T4": 1}), "b": make_capabilities(gpus={"L4": 2})}
    await queue(place).announce(offers)
    (worker,) = await place.store.workers.alive()
    assert (worker.gpus, dict(worker.offers)) == (("L4", "T4"), offers)
    await queue(place).leave()
    assert await place.store.workers.alive() == ()
