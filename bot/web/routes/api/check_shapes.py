"""Checks of tasks as they are answered."""

from datetime import datetime

from bot.domain.api.publishing import (
    CheckAnswer,
    CheckProblem,
    CheckRun,
    CheckState,
    GpuCheck,
    PublishedAnswer,
)
from bot.domain.board import Board
from bot.domain.ids import BoardId
from bot.ports import Store
from bot.reports.blocks import Tone
from bot.services.publishing.state import PublicationOutcome
from bot.web.publications import Check
from bot.web.routes.api.board_bodies import board_line


async def check_answer(store: Store, check: Check, now: datetime) -> CheckAnswer:
    """How far a check is, and its outcome."""
    outcome = check.outcome
    return CheckAnswer(
        id=check.id,
        name=check.name,
        state=_state(check),
        begun=check.state.begun,
        runs=tuple(
            CheckRun(words=each.words, ok=None if each.tone is None else each.tone is Tone.GOOD)
            for each in check.steps
        ),
        remarks=tuple(words for words, _ in check.remarks),
        problem=None if outcome is None else _problem(outcome),
        published=await _published(store, outcome, now),
    )


def _state(check: Check) -> CheckState:
    outcome = check.outcome
    if outcome is None:
        return CheckState.RUNNING if check.tries else CheckState.WAITING
    return CheckState.REFUSED if outcome.board is None else CheckState.PUBLISHED


def _problem(outcome: PublicationOutcome) -> CheckProblem | None:
    if outcome.board is not None:
        return None
    return CheckProblem(code=outcome.code, detail=outcome.reason)


async def _published(
    store: Store, outcome: PublicationOutcome | None, now: datetime
) -> PublishedAnswer | None:
    if outcome is None or outcome.board is None:
        return None
    board: Board | None = await store.boards.get(BoardId(outcome.board))
    return PublishedAnswer(
        board=None if board is None else board_line(board, now),
        task_version=outcome.version,
        version_note=outcome.note,
        change=outcome.change,
        checked=tuple(GpuCheck(gpu=gpu, obstacle=why) for gpu, why in outcome.checked),
    )
