"""Tests of following evaluations and submissions."""

import asyncio
import io
import os
import signal
from typing import cast

import pytest
from rich.console import Console

from bot.domain.access import NOBODY, Viewer
from bot.domain.ids import SubmissionId
from bot.frontends.cli.following import _moved, evaluate, follow, follow_all, stop_signals
from bot.frontends.cli.installation import Installation, OpenPodium
from bot.frontends.cli.local_client import LocalClient
from bot.frontends.cli.progress import ProgressLines
from bot.ports import Notice, Store, Topic
from bot.services.dispatch import DispatchConfig, Dispatcher, StoreQueue
from bot.services.publishing.publish import publish
from bot.services.publishing.request import PublishRequest
from bot.services.submit import submit
from bot.store.clock import SystemClock
from bot.store.memory import MemoryStore
from runners.backends import fake
from runners.contract.runner import RunnerError
from runners.contract.verdict import Verdict
from tests.doubles.factories import make_request, make_submission, make_task

WRONG = "# fake: verdict=wrong_answer\n"


def _lines() -> tuple[ProgressLines, io.StringIO]:
    stream = io.StringIO()
    return ProgressLines(Console(file=stream, force_terminal=False)), stream


async def _submitted(store: Store, *sources: str) -> list[SubmissionId]:
    clock = SystemClock()
    person = await store.people.ensure("local:ada", "ada")
    await publish(store, clock, PublishRequest(person.id), make_task())
    requests = [make_submission(person.id, content=source.encode()) for source in sources]
    return [(await submit(store, clock, request)).id for request in requests]


async def test_one_evaluation_is_awaited_and_its_steps_are_told() -> None:
    runner = fake.create()
    lines, stream = _lines()
    evaluation = await evaluate(runner, make_request(source=WRONG), lines)
    await runner.aclose()
    assert evaluation.verdict is Verdict.WRONG_ANSWER
    assert "vectoradd: test" in stream.getvalue()


async def test_a_runners_failure_is_handed_on() -> None:
    runner = fake.create()
    with pytest.raises(RunnerError):
        await evaluate(runner, make_request(source="# fake: error=boom\n"), _lines()[0])
    await runner.aclose()


async def test_submissions_are_followed_to_their_ends() -> None:
    store, runner, stop = MemoryStore(SystemClock()), fake.create(), asyncio.Event()
    numbers = await _submitted(store, "# fake: seconds=0.1\n", WRONG)
    config = DispatchConfig(poll_s=0.05)
    dispatcher = Dispatcher(StoreQueue(store, config), [runner], SystemClock(), config)
    lines, stream = _lines()
    async with asyncio.TaskGroup() as group:
        group.create_task(dispatcher.run(stop))
        names = {number: f"#{number}" for number in numbers}
        ended = await follow_all(store, names, lines)
        again = await follow(_client(store), numbers[0], lines, "again")
        stop.set()
    await runner.aclose()
    verdicts = [job.evaluation.verdict for n in numbers for job in ended[n].jobs if job.evaluation]
    assert verdicts == [Verdict.PASSED, Verdict.WRONG_ANSWER]
    assert again == ended[numbers[0]]
    assert f"#{numbers[1]}: CPU: wrong answer" in stream.getvalue()
    assert "again: CPU: passed" in stream.getvalue()


def _client(store: Store) -> LocalClient:
    podium = OpenPodium(store, SystemClock(), "memory", served=False, shared=False)
    return LocalClient(cast("Installation", None), podium, Viewer(NOBODY))


def test_a_notice_concerns_its_own_submission_and_silence_the_oldest_few() -> None:
    waiting = {SubmissionId(number): "" for number in (3, 4, 5, 6)}
    assert _moved(Notice(Topic.PROGRESS, "5"), waiting) == [5]
    assert _moved(Notice(Topic.PROGRESS, "9"), waiting) == []
    assert _moved(None, waiting) == [3, 4, 5]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_polite_signal_sets_the_event_instead_of_breaking_off(number: int) -> None:
    with stop_signals() as stop:
        os.kill(os.getpid(), number)
        async with asyncio.timeout(5):
            await stop.wait()
    assert stop.is_set()
