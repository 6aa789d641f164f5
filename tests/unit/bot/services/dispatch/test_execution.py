import asyncio

import pytest
from typing_extensions import override

from bot.domain.ids import JobId, SubmissionId
from bot.domain.job import LeasedJob
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.execution import Execution, ExecutionRequest, ProgressFeed
from bot.services.dispatch.runner_pool import RunnerPool
from bot.services.dispatch.worker_queue import StoreQueue
from runners.backends import fake
from runners.contract.evaluation import CPU, EvaluationRequest, Progress
from runners.contract.runner import CallId, RunnerError
from runners.contract.verdict import Stage
from tests.doubles.factories import NOON, make_capabilities, make_request
from tests.doubles.memory_store import MemoryStore


async def test_a_change_of_stage_is_told_at_once_and_counts_are_thinned_out() -> None:
    told: list[Progress] = []

    async def tell(progress: Progress) -> None:
        told.append(progress)

    async with ProgressFeed(tell, every_s=0.05) as feed:
        for done in range(20):
            feed.put(Progress(stage=Stage.TEST, done=done, total=20))
            await asyncio.sleep(0.005)
        feed.put(Progress(stage=Stage.TIMING))
        await asyncio.sleep(0.005)
        assert told[-1].stage is Stage.TIMING
    counts = [step.done for step in told if step.stage is Stage.TEST]
    assert counts[0] == 0
    assert 2 <= len(counts) <= 5
    assert counts == sorted(counts)


async def test_the_last_count_of_a_burst_is_told_when_it_is_due() -> None:
    told: list[int] = []

    async def tell(progress: Progress) -> None:
        told.append(progress.done)

    async with ProgressFeed(tell, every_s=0.02) as feed:
        for done in range(5):
            feed.put(Progress(stage=Stage.TEST, done=done))
            await asyncio.sleep(0)
        await asyncio.sleep(0.06)
    assert told[-1] == 4
    assert len(told) == 2


async def test_every_stage_of_a_quick_run_is_told() -> None:
    told: list[Stage] = []

    async def tell(progress: Progress) -> None:
        told.append(progress.stage)

    async with ProgressFeed(tell, every_s=10) as feed:
        for stage in (Stage.BUILD, Stage.TEST, Stage.TIMING):
            feed.put(Progress(stage=stage))
        await asyncio.sleep(0.01)
    assert told == [Stage.BUILD, Stage.TEST, Stage.TIMING]


async def test_leaving_does_not_wait_for_what_is_not_due() -> None:
    async def tell(_: Progress) -> None:
        return

    begun = asyncio.get_running_loop().time()
    async with ProgressFeed(tell, every_s=60) as feed:
        feed.put(Progress(stage=Stage.TEST))
        await asyncio.sleep(0.01)
        feed.put(Progress(stage=Stage.TEST, done=1))
    assert asyncio.get_running_loop().time() - begun < 1


async def test_an_error_while_telling_does_not_reach_the_evaluation(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def tell(_: Progress) -> None:
        raise LookupError("nobody listens")

    async with ProgressFeed(tell, every_s=1) as feed:
        feed.put(Progress(stage=Stage.TEST))
        await asyncio.sleep(0.01)
    assert "progress-lost" in capsys.readouterr().out


class UnableRunner(fake.FakeRunner):
    """A runner that offers a slot and starts nothing on it: it is silent, or says why."""

    def __init__(self, words: str | None) -> None:
        super().__init__("unable", make_capabilities())
        self._words = words

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        if self._words is None:
            await asyncio.get_running_loop().create_future()
        raise RunnerError(self._words or "")


@pytest.mark.parametrize("words", [None, "the machine is full"])
async def test_a_runner_that_starts_no_call_offers_nothing_until_it_is_asked_again(
    memory_store: MemoryStore, words: str | None
) -> None:
    pool = RunnerPool([UnableRunner(words)], offer_s=1)
    await pool.refresh()
    config = DispatchConfig(call_s=0.01)
    request = make_request()
    job = LeasedJob(JobId(1), SubmissionId(2), CPU, request.mode, 3, None, NOON)
    queue = StoreQueue(memory_store, config)
    execution = Execution(ExecutionRequest(job, request, queue, config), pool, lambda: None)

    with pytest.raises(RunnerError, match=words or "runner unable did not start the call"):
        await execution.evaluation()
    assert pool.offer_dropped.is_set()
    assert pool.slots() == {}
    await pool.refresh()
    assert pool.slots() == {CPU: 1}
