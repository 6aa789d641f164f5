"""Submits a file, the same file again, or everyone's best to a new task version; cancels."""

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace

import structlog

from bot.domain import acceptance
from bot.domain.board import Board, Viewer
from bot.domain.costs import GpuTime, day_of, jobs_need, shortage
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId, TaskVersionId, is_system_submission
from bot.domain.job import PRIORITIES
from bot.domain.scoring import rank_entrants
from bot.domain.submission import (
    IdempotencyKey,
    NewDisplay,
    NewSubmission,
    Submission,
    SubmissionRequest,
    SubmissionState,
)
from bot.domain.tasks.lint import python_fault
from bot.ports import Clock, Store
from bot.services.lookup import board_of, find_submission, own_board, own_submission, task_of
from bot.services.moderation import Decision
from bot.services.parser_process import BusyError, ParserProcess, TooHardError
from runners.contract.evaluation import ProfileOptions
from runners.contract.task import Mode, TaskDefinition
from runners.languages import spec_of

_log = structlog.get_logger(__name__)


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
    ban = await store.moderation.ban_of(person)
    if ban is not None:
        raise ban.refusal
    now = clock.now()
    reached = await store.moderation.limited_by(person, board.id, mode, now)
    if reached is not None:
        limit, counted = reached
        raise limit.refusal(counted, now)


async def require_gpu_time(store: Store, clock: Clock, needs: Iterable[GpuTime]) -> None:
    """Raise UserError when a quota has no room for one of these jobs, even if no other runs.

    This check only reports early: a claim starts no job without room.
    """
    quotas, now = await store.costs.quotas(), clock.now()
    if not quotas:
        return
    counted = await store.costs.counted(day_of(now))
    used = [replace(each, reserved_s=0.0) for each in counted]
    for need in needs:
        short = shortage(quotas, used, store.costs.prices, need)
        if short is not None:
            raise short.refusal(now)


async def submit(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    """Store a valid submission, one job per GPU type; UserError says what to change.

    A request repeated with its key is not stored again: it returns the first submission, even if
    the board has since closed or a limit was reached.
    """
    person, key = request.viewer.person, request.idempotency_key
    if key is None:
        return await _accept(store, clock, request)
    first = await store.submissions.first(person, key)
    if first is not None:
        return first
    try:
        return await _accept(store, clock, request)
    except UserError:  # perhaps because the first one arrived at the same moment
        first = await store.submissions.first(person, key)
        if first is None:
            raise
        return first


def _check_profile(task: TaskDefinition, options: ProfileOptions) -> None:
    """Raise UserError for a benchmark that the board's task does not have."""
    count = len(task.benchmarks)
    if options.benchmark is not None and options.benchmark >= count:
        words = f"benchmark_index must be from 0 to {count - 1}" if count else "the task has none"
        raise UserError("bad-benchmark", f"there is no benchmark {options.benchmark}: {words}")


async def _accept(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    person = request.viewer.person
    file = acceptance.read_file(request.file_name, request.content)
    name = acceptance.board_name(request.board, file.header)
    board, task = await task_of(store, request.viewer, name)
    acceptance.check_open(board, request.mode, clock.now())
    acceptance.check_language(file.name, board.name, task)
    gpus = acceptance.choose_gpus(request.gpus, file.header.gpus, board.gpus)
    await admit(store, clock, person, board=board, mode=request.mode)
    of = GpuTime(person, board.id, "")
    await require_gpu_time(store, clock, jobs_need(task, request.mode, gpus, of))
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
            idempotency_key=request.idempotency_key,
            profile=profile,
            warning=await check_syntax(store, file.source, gpus) if is_python else "",
            limit_s=task.limit_s(request.mode),
            cards=task.world_size,
        )
    )
    ids = {"submission": submission.id, "person": person, "board": board.id}
    mode, gpus = submission.mode.value, submission.gpus
    _log.info("submission accepted", action="submitted", mode=mode, gpus=gpus, **ids)
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
    board = await board_of(store, earlier)
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
    """Cancel every unfinished job and record that in the audit log; return how many there were.

    UserError for another person's submission and for one that does not exist.
    """
    await own_submission(store, viewer, submission_id)
    async with store.transaction() as tx:
        stopped = await tx.jobs.request_cancel(submission_id)
        if stopped:
            await tx.audit.record(viewer.person, "cancel", f"submission {submission_id}", "")
    return stopped


SOURCES = ParserProcess(5.0, patience_s=10.0)
"""The process that parses submissions."""
PARSER_VERSION = sys.version_info[:2]
"""The version of Python that parses submissions."""
_VERSION = re.compile(r"(\d+)\.(\d+)")


async def check_syntax(store: Store, source: str, gpus: Iterable[str]) -> str:
    """Raise UserError for invalid Python; return a warning if the runners' Python may be newer.

    Empty when there is nothing to warn about.
    """
    error = await fault_of(source)
    if error is None:
        return ""
    pythons = await _runner_pythons(store, frozenset(gpus))
    if pythons and max(pythons) <= PARSER_VERSION:
        raise UserError(
            "syntax-error", f"the file is not valid Python: {error}; fix it and submit again"
        )
    version = ".".join(map(str, PARSER_VERSION))
    return (
        f"this may not be valid Python: {error}. Python {version} rejects it, but the runner may "
        "have a newer version, so it is judged anyway"
    )


async def fault_of(source: str) -> str | None:
    """Return the parser's error with its line; None for a valid source."""
    try:
        return await SOURCES.call(python_fault, source)
    except (TooHardError, BusyError):  # the judge reports it instead
        return None


async def _runner_pythons(store: Store, gpus: frozenset[str]) -> list[tuple[int, int]]:
    """Return the Python versions of live runners that offer one of the GPU types, if known."""
    offers = [
        offer
        for worker in await store.workers.alive()
        for offer in worker.offers.values()
        if gpus & offer.gpus.keys()
    ]
    versions = [_VERSION.match(offer.python) for offer in offers]
    if not all(versions):
        return []
    return [(int(each[1]), int(each[2])) for each in versions if each]


async def rejudge_submission(
    store: Store, decision: Decision, submission_id: SubmissionId, key: str | None = None
) -> Submission:
    """Return a new submission of the same source for the same person, even after the deadline.

    A request repeated with its key returns the first one.
    """
    earlier = await find_submission(store, submission_id)
    if is_system_submission(submission_id):
        words = f"submission {submission_id} is Podium's own and is never ranked"
        raise UserError("not-a-persons", words)
    board = await board_of(store, earlier)
    gpus = tuple(gpu for gpu in earlier.gpus if gpu in board.gpus)
    if not gpus:
        raise UserError(
            "no-gpu-left", f"the leaderboard no longer runs on {', '.join(earlier.gpus)}"
        )
    new = NewSubmission(
        person=earlier.person,
        board=board.id,
        task_version=board.task_version,
        file_name=earlier.file_name,
        source=await store.submissions.source(earlier.id),
        mode=earlier.mode,
        gpus=gpus,
        priority=PRIORITIES[Mode.RANKED],
        judged_again=True,
        consent=earlier.consent,
        idempotency_key=None if key is None else IdempotencyKey(key, earlier.source_hash),
    )
    async with store.transaction() as tx:
        first = new.idempotency_key and await tx.submissions.first(new.person, new.idempotency_key)
        if first:
            return first
        again = await tx.submissions.add(new)
        subject = f"submission {submission_id} as {again.id}"
        await tx.audit.record(decision.actor, "rejudge", subject, decision.reason)
    return again


async def rejudge_standings(
    store: Store, decision: Decision, board: Board, version: TaskVersionId
) -> int:
    """Judge everyone's best submission to an earlier version by the current one; return how many.

    Sources that the current version has judged, or is going to judge, are skipped.
    """
    current = [
        each
        for each in await store.submissions.to(board.id)
        if each.task_version == board.task_version
    ]
    judged = {run for each in current if _may_be_ranked(each) for run in _runs(each)}
    best = await best_of(store, board, version)
    submissions = [each for each in best if _runs(each, board.gpus) - judged]
    for each in submissions:
        failed = max((old.id for old in current if _runs(old) & _runs(each)), default=0)
        key = f"rejudge:{each.id}:{board.task_version}:{failed}"  # the same for requests at once
        await rejudge_submission(store, decision, each.id, key)
    return len(submissions)


async def rejudge_from(store: Store, viewer: Viewer, board: Board, number: int) -> tuple[int, int]:
    """Judge everyone's best submission to the version of this number by the current one.

    Return how many are judged, and the current version's number. UserError when the viewer may not
    change the board, or when there is nothing to judge.
    """
    await own_board(store, viewer, board.name)
    versions = await store.boards.versions(board.id)
    earlier = next((each for each in versions if each.number == number), None)
    if earlier is None or earlier.id == board.task_version:
        raise UserError(
            "no-version",
            f"task version {number} is the current one or does not exist; choose an earlier one",
        )
    present = next(each.number for each in versions if each.id == board.task_version)
    decision = Decision(viewer.person, f"task version {present}")
    count = await rejudge_standings(store, decision, board, earlier.id)
    if not count:
        raise UserError(
            "judged", "every best submission already uses this task version; nothing to rejudge"
        )
    return count, present


async def best_of(store: Store, board: Board, version: TaskVersionId) -> tuple[Submission, ...]:
    """Return everyone's best submissions to a task version on each GPU type, without repeats."""
    best: dict[SubmissionId, Submission] = {}
    for gpu in board.gpus:
        for standing in rank_entrants(await store.results.entrants(version, gpu)):
            number = standing.score.submission
            best[number] = await find_submission(store, number)
    return tuple(best.values())


def _may_be_ranked(submission: Submission) -> bool:
    """Return whether it was or still may be ranked; failed and cancelled ones cannot be."""
    ended_unranked = submission.state in {SubmissionState.FAILED, SubmissionState.CANCELLED}
    return submission.mode is Mode.RANKED and not ended_unranked


def _runs(
    submission: Submission, gpus: tuple[str, ...] | None = None
) -> set[tuple[PersonId, str, str]]:
    """Return person, source and GPU type of each run, limited to the given GPU types."""
    person, source = submission.person, submission.source_hash
    return {(person, source, gpu) for gpu in submission.gpus if gpus is None or gpu in gpus}
