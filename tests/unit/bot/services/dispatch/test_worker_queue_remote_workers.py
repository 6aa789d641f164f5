import asyncio

import pytest
from typing_extensions import override

from bot.domain.errors import UserError
from bot.domain.ids import JobId
from bot.domain.job import GiveUpReason, Job, JobState, LeasedJob
from bot.domain.submission import Submission
from bot.services.dispatch.worker_queue import RemoteWorker
from runners.contract.evaluation import CPU, EvaluationRequest, Progress
from runners.contract.verdict import Stage
from tests.doubles.agents import LEASE
from tests.doubles.factories import make_evaluation
from tests.doubles.place import Place


def agent(place: Place, name: str = "box:1") -> RemoteWorker:
    return RemoteWorker(place.store, name, LEASE)


async def claimed(place: Place) -> tuple[Submission, Job]:
    submission = await place.submit()
    await agent(place).claim({CPU: 1})
    (job,) = await place.jobs(submission)
    return submission, job


async def test_who_guesses_job_and_fence_of_another_worker_is_refused(place: Place) -> None:
    submission, job = await claimed(place)
    other = agent(place, "box:2")
    evaluation = make_evaluation(mode=job.mode, request_id=f"job-{job.id}")
    deeds = [
        other.request(job.id, job.fence),
        other.attach(job.id, job.fence, "call"),
        other.report_progress(job.id, job.fence, Progress(stage=Stage.TEST)),
        other.accept(job.id, job.fence, evaluation),
        other.give_up(job.id, job.fence, GiveUpReason.HOPELESS, "mine"),
        agent(place).accept(job.id, job.fence + 1, evaluation),
        agent(place).accept(JobId(999), 1, evaluation),
    ]
    for deed in deeds:
        with pytest.raises(UserError) as refused:
            await deed
        assert refused.value.code == "lease-lost"
    assert await place.jobs(submission) == (job,)
    assert await other.heartbeat({job.id: job.fence}) == ()


async def test_an_evaluation_is_taken_once_and_its_repetition_is_no_fault(place: Place) -> None:
    submission, job = await claimed(place)
    evaluation = make_evaluation(mode=job.mode, request_id=f"job-{job.id}")
    await agent(place).accept(job.id, job.fence, evaluation)
    (first,) = await place.store.results.evaluations(submission.id)
    await agent(place).accept(job.id, job.fence, evaluation.model_copy(update={"log": "again"}))
    assert await place.store.results.evaluations(submission.id) == (first,)
    with pytest.raises(UserError, match="no longer belongs to this worker"):
        await agent(place).give_up(job.id, job.fence, GiveUpReason.FAILED, "late")
    assert (await place.jobs(submission))[0].state is JobState.SUCCEEDED


async def test_an_answer_to_another_order_is_refused_and_the_job_goes_on(place: Place) -> None:
    submission, job = await claimed(place)
    with pytest.raises(UserError) as refused:
        await agent(place).accept(job.id, job.fence, make_evaluation(mode=job.mode))
    assert refused.value.code == "no-answer"
    assert (await place.jobs(submission))[0].state is JobState.RUNNING


async def test_a_job_that_was_given_up_is_nobodys_to_answer(place: Place) -> None:
    _, job = await claimed(place)
    await agent(place).give_up(job.id, job.fence, GiveUpReason.CANCELLED, "")
    with pytest.raises(UserError) as refused:
        await agent(place).request(job.id, job.fence)
    assert refused.value.code == "lease-lost"


async def test_an_evaluation_that_is_sent_twice_at_once_is_stored_once(place: Place) -> None:
    submission, job = await claimed(place)
    evaluation = make_evaluation(mode=job.mode, request_id=f"job-{job.id}")
    read = asyncio.Barrier(2)

    class Paced(RemoteWorker):
        @override
        async def _evaluation_request(self, job: JobId, leased: LeasedJob) -> EvaluationRequest:
            order = await super()._evaluation_request(job, leased)
            await read.wait()  # both have seen that it runs
            return order

    twins = [Paced(place.store, "box:1", LEASE) for _ in range(2)]
    await asyncio.gather(*(each.accept(job.id, job.fence, evaluation) for each in twins))
    assert len(await place.store.results.evaluations(submission.id)) == 1
