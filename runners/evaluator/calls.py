"""One evaluation by a runner, begun again where the runner fails, and never waited for for ever."""

import asyncio
from contextlib import suppress

from runners.contract.evaluation import Evaluation, EvaluationRequest, Progress
from runners.contract.runner import CallId, Capabilities, Runner, RunnerError
from runners.evaluator.failures import InfrastructureError

GRACE_S = 240.0
"""What an evaluation may take beyond its task's limits: a start on a slow disk, and the runner's
own grace, after which it says itself what happened."""
STOP_S = 30.0
"""What a runner may take to stop a call."""
OFFER_S = 300.0
"""What a runner may take to say what it offers: the first harness may have to start for it."""


async def offered(runner: Runner) -> Capabilities:
    """What the runner offers; InfrastructureError when it does not say."""
    try:
        async with asyncio.timeout(OFFER_S):
            return await runner.capabilities()
    except TimeoutError as error:
        words = f"runner {runner.name} did not say within {OFFER_S:.0f} s what it offers"
        raise InfrastructureError(words) from error
    except RunnerError as error:
        raise InfrastructureError(f"runner {runner.name}: {error}") from error


async def evaluation(
    runner: Runner, request: EvaluationRequest, attempts: int, grace_s: float = GRACE_S
) -> Evaluation:
    """The runner's answer; InfrastructureError when every attempt failed."""
    limit_s = request.task.limit_s(request.mode) + grace_s
    for left in reversed(range(attempts)):
        try:
            return await _attempt(runner, request, limit_s)
        except TimeoutError as error:
            words = f"runner {runner.name} gave no evaluation within {limit_s:.0f} s"
            raise InfrastructureError(words) from error
        except RunnerError as error:
            if not left:
                raise InfrastructureError(f"runner {runner.name}: {error}") from error
    raise ValueError("an evaluation needs at least one attempt")


async def _attempt(runner: Runner, request: EvaluationRequest, limit_s: float) -> Evaluation:
    starting = asyncio.ensure_future(runner.start(request))
    try:
        async with asyncio.timeout(limit_s):
            return await runner.wait(await asyncio.shield(starting), _ignore)
    except (TimeoutError, asyncio.CancelledError):
        await asyncio.shield(_stop(runner, starting))
        raise


async def _stop(runner: Runner, starting: "asyncio.Future[CallId]") -> None:
    """Have the call stopped, even one that is only being started."""
    with suppress(TimeoutError, RunnerError):
        async with asyncio.timeout(STOP_S):
            await runner.cancel(await starting)


def _ignore(_: Progress) -> None:
    """What happens within one evaluation is told to nobody."""
