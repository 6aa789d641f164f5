"""Tests of waiting for what was handed in."""

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from rich.console import Console
from typing_extensions import override

from bot.domain.errors import SetupError
from bot.domain.ids import SubmissionId
from bot.domain.job import JobState
from bot.domain.status import SubmissionStatus
from bot.frontends.cli.client import Client, Say
from bot.frontends.cli.context import CommandLine
from bot.frontends.cli.failures import ExitCode
from bot.frontends.cli.installation import Installation
from bot.frontends.cli.waiting import exit_code, judged, tell
from runners.contract.verdict import Stage, Verdict
from tests.doubles.factories import make_evaluation
from tests.doubles.waited import SEVEN, make_status

QUEUED, DONE = make_status(JobState.QUEUED), make_status(JobState.SUCCEEDED)


@dataclass
class Waited:
    """A client with a submission that moves as it is told."""

    moves: list[SubmissionStatus]
    lacks: str | None = None
    idles: str | None = None
    look_s: float = 0.001
    suffix: str = " --server https://podium.test"
    attended: list[str] = field(default_factory=list)

    async def watch(self, number: SubmissionId) -> AsyncIterator[SubmissionStatus]:
        for each in self.moves:
            yield each
        if not self.moves[-1].is_final:
            await asyncio.Event().wait()

    async def status(self, number: SubmissionId) -> SubmissionStatus:
        return self.moves[-1]

    def attending(self, say: Say) -> AbstractAsyncContextManager[None]:
        self.attended.append("yes")
        return nullcontext()

    async def lack(self, number: SubmissionId) -> str | None:
        return self.lacks

    async def idle(self) -> str | None:
        return self.idles

    def keeper(self) -> str:
        return "stays at https://podium.test"


class Told:
    """A command line whose words can be read."""

    def __init__(self) -> None:
        self.out, self.err = io.StringIO(), io.StringIO()
        consoles = [Console(file=each, width=200) for each in (self.out, self.err)]
        self.line = CommandLine(cast("Installation", None), *consoles)


async def test_the_result_is_waited_for() -> None:
    told, client = Told(), Waited([QUEUED, DONE])
    assert await judged(told.line, cast("Client", client), SEVEN, wait=True) == DONE
    assert "#7: CPU: queued" in told.err.getvalue()
    assert client.attended == ["yes"]


@pytest.mark.parametrize("idle", [None, "start `podium up`"])
async def test_who_does_not_wait_is_told_when_nobody_judges(idle: str | None) -> None:
    told, client = Told(), Waited([QUEUED], idles=idle)
    assert await judged(told.line, cast("Client", client), SEVEN, wait=False) == QUEUED
    assert told.err.getvalue() == ("" if idle is None else f"{_IDLE}{idle}\n")


_IDLE = "nobody works through this queue yet: "


async def test_where_nobody_could_judge_it_the_wait_ends_and_the_way_back_is_said() -> None:
    told, client = Told(), Waited([QUEUED], lacks="nobody at work offers H100")
    with pytest.raises(ExceptionGroup) as raised:
        await judged(told.line, cast("Client", client), SEVEN, wait=True)
    assert isinstance(raised.value.exceptions[0], SetupError)
    assert told.err.getvalue().splitlines()[-1] == (
        "submission #7 is stored and stays at https://podium.test; "
        "`podium show 7 --server https://podium.test` shows it, "
        "`podium cancel 7 --server https://podium.test` stops it"
    )


async def test_a_submission_whose_server_goes_away_is_told_all_the_same() -> None:
    class Gone(Waited):
        @override
        async def idle(self) -> str | None:
            raise SetupError("no answer")

    told = Told()
    with pytest.raises(SetupError):
        await judged(told.line, cast("Client", Gone([QUEUED])), SEVEN, wait=False)
    assert "submission #7 is stored and stays at" in told.err.getvalue()


async def test_breaking_off_says_the_way_back() -> None:
    told, client = Told(), Waited([QUEUED])
    waiting = asyncio.create_task(judged(told.line, cast("Client", client), SEVEN, wait=True))
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert "submission #7 is stored and stays at" in told.err.getvalue()


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
    assert tell(told.line, ended, wait=True, as_json=False) is code
    assert "k.py on vectoradd" in told.out.getvalue()


def test_what_was_given_up_is_our_fault_and_what_was_stopped_no_pass() -> None:
    assert exit_code(make_status(JobState.FAILED)) is ExitCode.OURS
    assert exit_code(make_status(JobState.CANCELLED)) is ExitCode.VERDICT


def test_what_is_not_waited_for_is_told_as_queued() -> None:
    told = Told()
    assert tell(told.line, QUEUED, wait=False, as_json=False) is ExitCode.PASSED
    assert tell(told.line, QUEUED, wait=False, as_json=True) is ExitCode.PASSED
    words, shape = told.out.getvalue().splitlines()
    assert words == "submission #7 is queued"
    assert '"submission": 7' in shape
