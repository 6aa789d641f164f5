"""Tests of following evaluations and submissions to their end."""

import asyncio
import io
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from rich.console import Console
from typing_extensions import override

from bot.app.context import OpenPodium, SystemClock
from bot.app.installation import Installation
from bot.app.servers import Say
from bot.cli.client import Client, LocalClient
from bot.cli.context import CommandLine
from bot.cli.errors import ExitCode
from bot.cli.follow import (
    ProgressLines,
    _changed,
    evaluate,
    exit_code,
    follow,
    follow_all,
    print_result,
    stop_signals,
    wait_for_result,
)
from bot.domain.board import NOBODY, Viewer
from bot.domain.errors import SetupError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState, Notice, Topic
from bot.domain.publication import PublishRequest
from bot.domain.status import SubmissionStatus
from bot.ports import Store
from bot.reports.blocks import Text
from bot.services.dispatch.config import DispatchConfig
from bot.services.dispatch.dispatcher import Dispatcher
from bot.services.dispatch.worker_queue import StoreQueue
from bot.services.publishing.publish import publish
from bot.services.submissions import submit
from runners.backends import fake
from runners.contract.runner import RunnerError
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_evaluation, make_request, make_submission, make_task
from tests.doubles.memory_store import MemoryStore
from tests.doubles.waited import SEVEN, make_status

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
    assert _changed(Notice(Topic.PROGRESS, "5"), waiting) == [5]
    assert _changed(Notice(Topic.PROGRESS, "9"), waiting) == []
    assert _changed(None, waiting) == [3, 4, 5]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_polite_signal_sets_the_event_instead_of_breaking_off(number: int) -> None:
    with stop_signals() as stop:
        os.kill(os.getpid(), number)
        async with asyncio.timeout(5):
            await stop.wait()
    assert stop.is_set()


def test_a_pipe_gets_one_line_per_change() -> None:
    stream = io.StringIO()
    with ProgressLines(Console(file=stream, force_terminal=False)) as lines:
        lines.show("#1", Text("queued"))
        lines.show("#1", Text("queued"))
        lines.show("#1", Text("passed\x1b[2J"))
    assert stream.getvalue() == "#1: queued\n#1: passed\n"


def test_a_terminal_gets_a_bar_of_what_is_done() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system=None, width=80)
    with ProgressLines(console) as lines:
        lines.show("#1", Text("test 2/5"), 0.4)
        lines.show("#1", Text("test 4/5"), 0.8)
    assert f"#1  {'━' * 16}" in stream.getvalue()


def test_a_terminal_gets_a_drawing_that_goes_away() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with ProgressLines(console, shown=1) as lines:
        lines.show("#1", Text("[red]queued"))
        lines.show("#2", Text("passed"))
    drawn = stream.getvalue()
    assert "passed" in drawn
    assert drawn.rstrip().endswith("\x1b[2K")


QUEUED, DONE = make_status(JobState.QUEUED), make_status(JobState.SUCCEEDED)


@dataclass
class Waited:
    """A client with a submission that moves as it is told."""

    moves: list[SubmissionStatus]
    lacks: str | None = None
    idles: str | None = None
    poll_s: float = 0.001
    suffix: str = " --server https://podium.test"
    attended: list[str] = field(default_factory=list)

    async def watch(self, number: SubmissionId) -> AsyncIterator[SubmissionStatus]:
        for each in self.moves:
            yield each
        if not self.moves[-1].is_final:
            await asyncio.Event().wait()

    async def status(self, number: SubmissionId) -> SubmissionStatus:
        return self.moves[-1]

    def judging(self, say: Say) -> AbstractAsyncContextManager[None]:
        self.attended.append("yes")
        return nullcontext()

    async def obstacle(self, number: SubmissionId) -> str | None:
        return self.lacks

    async def worker_hint(self) -> str | None:
        return self.idles

    def after_exit(self) -> str:
        return "continues at https://podium.test"


class Told:
    """A command line whose words can be read."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        consoles = [Console(file=each, width=200) for each in (self.out, self.err)]
        self.line = CommandLine(cast("Installation", None), *consoles)


async def test_the_result_is_waited_for() -> None:
    told, client = Told(), Waited([QUEUED, DONE])
    assert await wait_for_result(told.line, cast("Client", client), SEVEN, wait=True) == DONE
    assert "#7: CPU: queued" in told.err.getvalue()
    assert client.attended == ["yes"]


@pytest.mark.parametrize("idle", [None, "start `podium up`"])
async def test_who_does_not_wait_is_told_when_nobody_judges(idle: str | None) -> None:
    told, client = Told(), Waited([QUEUED], idles=idle)
    assert await wait_for_result(told.line, cast("Client", client), SEVEN, wait=False) == QUEUED
    stated = (
        f"submission #7 is stored. {QUEUED.submission.consent.statement(QUEUED.board.deadline)}\n"
    )
    assert told.err.getvalue() == stated + ("" if idle is None else f"{_IDLE}{idle}\n")


_IDLE = "no worker is running for this queue yet: "


async def test_where_nobody_could_judge_it_the_wait_ends_and_the_way_back_is_said() -> None:
    told, client = Told(), Waited([QUEUED], lacks="no connected worker offers H100")
    with pytest.raises(ExceptionGroup) as raised:
        await wait_for_result(told.line, cast("Client", client), SEVEN, wait=True)
    assert isinstance(raised.value.exceptions[0], SetupError)
    assert told.err.getvalue().splitlines()[-1] == (
        "submission #7 is stored and continues at https://podium.test; "
        "`podium show 7 --server https://podium.test` shows it, "
        "`podium cancel 7 --server https://podium.test` stops it"
    )


async def test_a_submission_whose_server_goes_away_is_told_all_the_same() -> None:
    class Gone(Waited):
        @override
        async def worker_hint(self) -> str | None:
            raise SetupError("no answer")

    told = Told()
    with pytest.raises(SetupError):
        await wait_for_result(told.line, cast("Client", Gone([QUEUED])), SEVEN, wait=False)
    assert "submission #7 is stored and continues at" in told.err.getvalue()


async def test_breaking_off_says_the_way_back() -> None:
    told, client = Told(), Waited([QUEUED])
    waiting = asyncio.create_task(
        wait_for_result(told.line, cast("Client", client), SEVEN, wait=True)
    )
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert "submission #7 is stored and continues at" in told.err.getvalue()


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(Verdict.PASSED, ExitCode.PASSED), (Verdict.CRASHED, ExitCode.VERDICT)],
)
def test_the_exit_code_is_the_verdict(verdict: Verdict, code: ExitCode) -> None:
    stage = None if verdict is Verdict.PASSED else Stage.TEST
    evaluation = make_evaluation(verdict=verdict, stage=stage)
    ended = replace(DONE, jobs=(replace(DONE.jobs[0], evaluation=evaluation),))
    assert exit_code(ended) is code
    told = Told()
    assert print_result(told.line, ended, wait=True, as_json=False) is code
    assert "k.py on vectoradd" in told.out.getvalue()


def test_what_was_given_up_is_our_fault_and_what_was_stopped_no_pass() -> None:
    assert exit_code(make_status(JobState.FAILED)) is ExitCode.INTERNAL
    assert exit_code(make_status(JobState.CANCELLED)) is ExitCode.VERDICT


def test_what_is_not_waited_for_is_told_as_queued() -> None:
    told = Told()
    assert print_result(told.line, QUEUED, wait=False, as_json=False) is ExitCode.PASSED
    assert print_result(told.line, QUEUED, wait=False, as_json=True) is ExitCode.PASSED
    words, shape = told.out.getvalue().splitlines()
    assert words == "submission #7 is queued"
    assert '"submission": 7' in shape
