import asyncio

import pytest

from runners.calls import Calls, Work
from runners.contract.evaluation import Evaluation, Progress
from runners.contract.runner import CallId, ProgressSink, RunnerError, UnknownCallError
from runners.contract.verdict import Stage
from tests.doubles.factories import make_evaluation

STEP = Progress(stage=Stage.TEST, done=1, total=2)


def ignore(_: Progress) -> None:
    return


def work(seconds: float = 0.0, error: Exception | None = None) -> Work:
    async def done(_: CallId, tell: ProgressSink) -> Evaluation:
        tell(STEP)
        await asyncio.sleep(seconds)
        if error is not None:
            raise error
        return make_evaluation()

    return done


async def test_every_waiter_gets_the_answer_and_the_last_progress() -> None:
    calls = Calls("x")
    call = calls.start(work(0.02))
    await asyncio.sleep(0)
    told: list[Progress] = []
    answers = await asyncio.gather(*(calls.wait(call, told.append) for _ in range(2)))
    assert answers == [make_evaluation()] * 2
    assert told == [STEP, STEP]
    assert await calls.wait(call, ignore) == make_evaluation()


async def test_what_the_work_raises_is_what_waiters_get() -> None:
    calls = Calls("x")
    call = calls.start(work(error=RunnerError("boom")))
    for _ in range(2):
        with pytest.raises(RunnerError, match="boom"):
            await calls.wait(call, ignore)


async def test_a_cancelled_call_is_unknown_so_that_whoever_joined_it_begins_anew() -> None:
    calls = Calls("x")
    call = calls.start(work(60))
    waiting = asyncio.create_task(calls.wait(call, ignore))
    await asyncio.sleep(0)
    await calls.cancel(call)
    for each in (waiting, calls.wait(call, ignore)):
        with pytest.raises(UnknownCallError, match="cancelled"):
            await each
    await calls.cancel(call)
    await calls.cancel(CallId("never was"))


async def test_a_waiter_that_is_cancelled_leaves_the_call_alone() -> None:
    calls = Calls("x")
    call = calls.start(work(0.05))
    waiting = asyncio.create_task(calls.wait(call, ignore))
    await asyncio.sleep(0)
    waiting.cancel()
    assert await calls.wait(call, ignore) == make_evaluation()


async def test_old_calls_are_forgotten_and_neither_recent_nor_running_ones() -> None:
    calls = Calls("x", remembered=2)
    running = [calls.start(work(0.1)) for _ in range(3)]
    ended = []
    for _ in range(5):
        ended.append(calls.start(work()))
        await calls.wait(ended[-1], ignore)
    with pytest.raises(UnknownCallError):
        await calls.wait(ended[0], ignore)
    for call in (*running, *ended[-2:]):
        assert await calls.wait(call, ignore) == make_evaluation()


async def test_a_forgotten_call_is_unknown() -> None:
    calls = Calls("x")
    call = calls.start(work())
    calls.remove(call)
    with pytest.raises(UnknownCallError, match="does not know"):
        await calls.wait(call, ignore)


async def test_closing_ends_every_call_and_takes_no_more() -> None:
    calls = Calls("x")
    waiting = asyncio.create_task(calls.wait(calls.start(work(60)), ignore))
    await asyncio.sleep(0)
    await calls.aclose()
    with pytest.raises(RunnerError):
        await waiting
    with pytest.raises(RunnerError, match="x is closed"):
        calls.start(work())
    await calls.aclose()


async def test_calls_of_two_lives_have_different_names() -> None:
    assert Calls("x").start(work()) != Calls("x").start(work())
