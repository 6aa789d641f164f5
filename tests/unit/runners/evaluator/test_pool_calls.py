import asyncio

import pytest
from typing_extensions import override

from runners.backends import fake
from runners.backends.fake import FakeRunner
from runners.contract.evaluation import EvaluationRequest
from runners.contract.runner import CallId, Capabilities, RunnerError
from runners.contract.verdict import Verdict
from runners.evaluator import InfrastructureError
from runners.evaluator.pool import capabilities_of, run_evaluation
from tests.doubles.evaluating import ENDLESS, RIGHT, WRONG, make_request


class Watched(FakeRunner):
    """A fake runner that can be slow to start a call, fails at times, and notes what it stops."""

    def __init__(self, fails: int = 0, slow_s: float = 0.0) -> None:
        offer = Capabilities(harness_version="1", gpus={"CPU": 4})
        super().__init__("watched", offer)
        self.fails = fails
        self.slow_s = slow_s
        self.stopped: list[CallId] = []
        self.requests: list[EvaluationRequest] = []

    @override
    async def start(self, request: EvaluationRequest) -> CallId:
        self.requests.append(request)
        await asyncio.sleep(self.slow_s)
        if self.fails:
            self.fails -= 1
            raise RunnerError("no machine")
        return await super().start(request)

    @override
    async def cancel(self, call: CallId) -> None:
        self.stopped.append(call)
        await super().cancel(call)


async def test_it_gives_the_verdict() -> None:
    found = await run_evaluation(Watched(), make_request(WRONG), 1)
    assert found.verdict is Verdict.WRONG_ANSWER


async def test_a_runner_that_fails_is_asked_again() -> None:
    runner = Watched(fails=2)
    assert (await run_evaluation(runner, make_request(), 3)).verdict is Verdict.PASSED
    with pytest.raises(InfrastructureError, match="runner watched: no machine"):
        await run_evaluation(Watched(fails=2), make_request(), 2)


async def test_a_machine_that_is_lost_is_ours() -> None:
    with pytest.raises(InfrastructureError, match="lost"):
        await run_evaluation(fake.create(), make_request(RIGHT + "# fake: lost\n"), 2)


@pytest.mark.parametrize(("directive", "counts"), [("error=boom", True), ("lost", False)])
async def test_a_further_attempt_is_told_what_a_failed_one_used(
    directive: str, *, counts: bool
) -> None:
    runner = Watched()
    with pytest.raises(InfrastructureError):
        await run_evaluation(runner, make_request(f"{RIGHT}# fake: {directive} seconds=0.05\n"), 2)
    first, second = (request.used_s for request in runner.requests)
    assert first == 0
    assert (second > 0.05) is counts


async def test_no_attempt_is_made_once_the_limit_is_used() -> None:
    request = make_request(RIGHT + "# fake: error=boom seconds=0.05\n", timeout_s=600)
    runner, used_s = Watched(), request.left_s - 0.01
    with pytest.raises(InfrastructureError, match="boom"):
        await run_evaluation(runner, request.model_copy(update={"used_s": used_s}), 3)
    assert runner.started == 1


async def test_nobody_waits_for_an_evaluation_for_ever() -> None:
    runner = Watched()
    with pytest.raises(InfrastructureError, match="no evaluation within 2 s"):
        await run_evaluation(runner, make_request(ENDLESS, timeout_s=600), 2, grace_s=-598)
    assert len(runner.stopped) == 1


@pytest.mark.parametrize("slow_s", [0.0, 0.1])
async def test_a_cancellation_stops_the_call_even_one_that_only_starts(slow_s: float) -> None:
    runner = Watched(slow_s=slow_s)
    task = asyncio.create_task(run_evaluation(runner, make_request(ENDLESS), 1))
    await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert len(runner.stopped) == runner.started == 1


async def test_a_runner_that_cannot_say_what_it_offers_is_ours() -> None:
    class Silent(Watched):
        @override
        async def capabilities(self) -> Capabilities:
            raise RunnerError("no route")

    with pytest.raises(InfrastructureError, match="no route"):
        await capabilities_of(Silent())
