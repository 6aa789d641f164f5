import asyncio

import pytest

from bot.services.dispatch.execution import ProgressFeed
from runners.contract.evaluation import Progress
from runners.contract.verdict import Stage


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
