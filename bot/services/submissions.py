"""Submitting, submitting again, and cancelling."""

from dataclasses import dataclass

import structlog

from bot.domain import acceptance
from bot.domain.board import Board, Viewer
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.job import PRIORITIES
from bot.domain.moderation import banned
from bot.domain.submission import NewDisplay, NewSubmission, Submission, SubmissionRequest
from bot.ports import Clock, Store
from bot.services.lookup import own_submission, task_of
from bot.services.syntax import check_syntax
from runners.contract.evaluation import ProfileOptions
from runners.contract.task import Mode, TaskDefinition
from runners.languages import spec_of


async def admit(store: Store, clock: Clock, person: PersonId, *, board: Board, mode: Mode) -> None:
    """Raise UserError when submissions are paused, the person is banned, or a limit is reached.

    This check only reports early: the store checks bans and limits again when it accepts a
    submission.
    """
    notice = await store.moderation.pause_notice()
    if notice is not None:
        raise UserError("paused", f"submissions are paused: {notice}")
    notice = (await store.moderation.board_pauses()).get(board.id)
    if notice is not None:
        raise UserError("paused", f"leaderboard {board.name!r} is paused: {notice}")
    reason = await store.moderation.ban_of(person)
    if reason is not None:
        raise banned(reason)
    now = clock.now()
    reached = await store.moderation.limited_by(person, board.id, mode, now)
    if reached is not None:
        limit, counted = reached
        raise limit.refusal(counted, now)


_log = structlog.get_logger(__name__)


async def submit(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    """Store a valid submission, one job per GPU type; UserError says what to change.

    A request repeated with its key is not stored again: it returns the first submission, even if
    the board has since closed or a limit was reached.
    """
    person, once = request.viewer.person, request.once
    if once is None:
        return await _take_in(store, clock, request)
    first = await store.submissions.first(person, once)
    if first is not None:
        return first
    try:
        return await _take_in(store, clock, request)
    except UserError:  # perhaps because the first one arrived at the same moment
        first = await store.submissions.first(person, once)
        if first is None:
            raise
        return first


def _check_profile(task: TaskDefinition, asked: ProfileOptions) -> None:
    """UserError for a benchmark that the board's task does not have."""
    there = len(task.benchmarks)
    if asked.benchmark is not None and asked.benchmark >= there:
        words = f"benchmark_index must be from 0 to {there - 1}" if there else "the task has none"
        raise UserError("bad-benchmark", f"there is no benchmark {asked.benchmark}: {words}")


async def _take_in(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    person = request.viewer.person
    file = acceptance.read_file(request.file_name, request.content)
    name = acceptance.board_name(request.board, file.heading)
    board, task = await task_of(store, request.viewer, name)
    acceptance.check_open(board, clock.now())
    acceptance.check_language(file.name, board.name, task)
    gpus = acceptance.choose_gpus(request.gpus, file.heading.gpus, board.gpus)
    await admit(store, clock, person, board=board, mode=request.mode)
    profile = request.profile if request.mode is Mode.PROFILE else None
    if profile is not None:
        _check_profile(task, profile)
    is_python = spec_of(task.lang).is_python
    submission = await store.submissions.add(
        NewSubmission(
            person=person,
            board=board.id,
            task_version=board.task_version,
            file_name=file.name,
            source=file.source,
            mode=request.mode,
            gpus=gpus,
            priority=PRIORITIES[request.mode],
            display=request.display,
            once=request.once,
            profile=profile,
            warning=await check_syntax(store, file.source, gpus) if is_python else "",
        )
    )
    _log.info(
        "taken in",
        action="submitted",
        submission=submission.id,
        person=person,
        board=board.id,
        mode=submission.mode.value,
        gpus=submission.gpus,
    )
    return submission


@dataclass(frozen=True, slots=True)
class RerunRequest:
    """Which submission to run again; without a mode, in its own."""

    viewer: Viewer
    submission: SubmissionId
    mode: Mode | None = None
    display: NewDisplay | None = None
    key: str | None = None


async def rerun(store: Store, clock: Clock, request: RerunRequest) -> Submission:
    """Submit the same source again; UserError when it is another person's or after the deadline."""
    earlier = await own_submission(store, request.viewer, request.submission)
    board = await store.boards.get(earlier.board)
    if board is None:
        raise LookupError(f"board {earlier.board} of submission {earlier.id} is not there")
    if board.is_hidden:
        words = "this was a request to the evaluation server; send it there again"
        raise UserError("on-no-board", words)
    source = await store.submissions.source(earlier.id)
    return await submit(
        store,
        clock,
        SubmissionRequest(
            viewer=request.viewer,
            file_name=earlier.file_name,
            content=source.encode(),
            mode=request.mode or earlier.mode,
            board=board.name,
            gpus=earlier.gpus,
            display=request.display,
            key=request.key,
            profile=earlier.profile,
        ),
    )


async def cancel(store: Store, viewer: Viewer, submission_id: SubmissionId) -> int:
    """Request the end of every unfinished job; record who asked and return how many there were.

    UserError for another person's submission and for one that does not exist.
    """
    await own_submission(store, viewer, submission_id)
    async with store.transaction() as tx:
        stopped = await tx.jobs.request_cancel(submission_id)
        if stopped:
            await tx.audit.record(viewer.person, "cancel", f"submission {submission_id}", "")
    return stopped
