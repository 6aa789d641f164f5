"""That a board with many submissions is written out while the bot goes on with everything else."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from bot.discord import roles
from bot.discord.commands import admin_reports
from bot.domain.accounts import Person
from bot.domain.board import Board
from bot.domain.ids import BoardId, PersonId, SubmissionId, TaskVersionId
from bot.domain.records import BoardExport, ExportedSubmission, JobResult
from bot.domain.scoring import ScoreValue
from bot.domain.submission import Submission, SubmissionState
from bot.reports.blocks import Attachment, Report
from bot.services import boards
from runners.contract.task import Mode
from runners.contract.verdict import Verdict

NOW = datetime(2026, 11, 1, tzinfo=UTC)
ADA = Person(PersonId(1), "local:ada", "Ada", NOW)
MANY = 20_000


def exported(number: int) -> ExportedSubmission:
    submission = Submission(
        id=SubmissionId(number),
        person=ADA.id,
        board=BoardId(1),
        task_version=TaskVersionId(1),
        file_name="kernel.py",
        source_hash="a" * 64,
        mode=Mode.RANKED,
        gpus=("H100",),
        state=SubmissionState.FINISHED,
        created_at=NOW,
    )
    outcome = JobResult(submission.id, "H100", Verdict.PASSED, ScoreValue(812.5, 1.5))
    return ExportedSubmission(submission, ADA, 1, (outcome,), frozenset({"H100"}), {})


class Answers:
    """Keeps what is answered."""

    def __init__(self) -> None:
        self.reports: list[Report] = []

    async def show(self, report: Report) -> None:
        self.reports.append(report)


async def test_many_submissions_are_written_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = Board(BoardId(1), "sort", ("H100",), None, ADA.id, TaskVersionId(1), NOW)
    found = BoardExport(board, tuple(exported(1 + n) for n in range(MANY)))
    answers = Answers()

    @asynccontextmanager
    async def replying(_: object) -> AsyncIterator[Answers]:
        yield answers

    async def given(*_: object) -> Any:  # noqa: ANN401  a viewer, then the export
        return found

    monkeypatch.setattr(admin_reports, "replying", replying)
    monkeypatch.setattr(boards, "export_board", given)
    monkeypatch.setattr(admin_reports, "context_of", lambda *_: SimpleNamespace(store=None))
    monkeypatch.setattr(roles, "viewer_of", given)
    monkeypatch.setattr(roles, "require", lambda *_: None)
    command: Any = admin_reports.export
    writing = asyncio.create_task(command.callback(None, "sort"))
    beats = await _beats_until(writing)
    (report,) = answers.reports
    assert len([block for block in report.blocks if isinstance(block, Attachment)]) == 3
    assert beats > 10


async def _beats_until(task: "asyncio.Task[None]") -> int:
    """How often the event loop comes round, a hundred times a second, until the task has ended."""
    for beats in itertools.count():
        await asyncio.sleep(0.01)
        if task.done():
            await task
            return beats
    raise AssertionError
