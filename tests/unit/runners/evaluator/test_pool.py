import asyncio

import pytest

from runners.backends import fake
from runners.contract.runner import Capabilities
from runners.evaluator import EvaluatorConfig, InfrastructureError
from runners.evaluator.pool import EvaluatorPool


async def test_it_opens_the_plugin_that_is_named_and_closes_it() -> None:
    config = EvaluatorConfig(backend="fake", slots={"H100": 2, "L4": 1})
    place = EvaluatorPool(None)
    assert await place.offer(config) == ("H100", "fake-1")
    async with place.slot(config) as runner:
        assert runner.name == "fake"
    await place.aclose()
    with pytest.raises(InfrastructureError, match="closed"):
        await place.offer(config)


async def test_a_runner_that_was_given_is_left_open() -> None:
    runner = fake.create()
    place = EvaluatorPool(runner)
    await place.aclose()
    assert (await runner.capabilities()).gpus


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (EvaluatorConfig(backend="nowhere"), "no 'nowhere'"),
        (EvaluatorConfig(backend="fake", gpu_type="H100"), "no GPU type 'H100'; it has CPU"),
    ],
)
async def test_a_place_that_is_not_there_is_our_failure(
    config: EvaluatorConfig, words: str
) -> None:
    with pytest.raises(InfrastructureError, match=words):
        await EvaluatorPool(None).offer(config)


async def test_a_runner_that_knows_no_such_tasks_is_refused() -> None:
    offered = Capabilities(harness_version="1", gpus={"CPU": 1})
    with pytest.raises(InfrastructureError, match="kernelbench"):
        await EvaluatorPool(fake.create(capabilities=offered)).offer(EvaluatorConfig())


@pytest.mark.parametrize(("slots", "most", "at_once"), [(3, None, 3), (3, 2, 2), (1, 9, 1)])
async def test_as_many_have_a_slot_as_there_are(slots: int, most: int | None, at_once: int) -> None:
    place = EvaluatorPool(fake.create(slots={"CPU": slots}))
    config = EvaluatorConfig(max_concurrency=most, queue_timeout_s=30)
    inside, seen = 0, 0

    async def use() -> None:
        nonlocal inside, seen
        async with place.slot(config):
            inside += 1
            seen = max(seen, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    await asyncio.gather(*(use() for _ in range(8)))
    assert seen == at_once


async def test_nobody_waits_for_a_slot_for_ever() -> None:
    place = EvaluatorPool(fake.create())
    config = EvaluatorConfig(queue_timeout_s=1)
    async with place.slot(config):
        with pytest.raises(InfrastructureError, match="no slot of CPU was free for 1 s"):
            async with place.slot(config):
                pass


@pytest.mark.parametrize("name", ["A100", "A100-40GB"])
async def test_a_card_is_found_by_each_of_its_names(name: str) -> None:
    config = EvaluatorConfig(backend="fake", slots={"A100-40GB": 1}, gpu_type=name)
    place = EvaluatorPool(None)
    gpu, _ = await place.offer(config)
    await place.aclose()
    assert gpu == "A100"
