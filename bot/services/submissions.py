"""Takes a submission in: checks it by the rules of acceptance and stores it with its jobs."""

import structlog

from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.job import PRIORITIES
from bot.domain.submission import NewSubmission, Submission, SubmissionRequest
from bot.ports import Clock, Store
from bot.services.admit import admit
from bot.services.lookup import task_of
from bot.services.syntax import check_syntax
from runners.contract.profile import ProfileOptions
from runners.contract.task import Mode, TaskDefinition
from runners.languages import spec_of

_log = structlog.get_logger(__name__)


async def submit(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    """Store an acceptable submission, one job per GPU type; UserError says what to change.

    One that comes again with its key is not stored again: the first one is given, even where the
    board has closed or a limit was reached since.
    """
    person, once = request.viewer.person, request.once
    if once is None:
        return await _take_in(store, clock, request)
    first = await store.submissions.first(person, once)
    if first is not None:
        return first
    try:
        return await _take_in(store, clock, request)
    except UserError:  # perhaps of the first one, which came at the same moment
        first = await store.submissions.first(person, once)
        if first is None:
            raise
        return first


def _check_profile(task: TaskDefinition, asked: ProfileOptions) -> None:
    """UserError for a benchmark that the board's task does not have."""
    there = len(task.benchmarks)
    if asked.benchmark is not None and asked.benchmark >= there:
        words = f"benchmark_index is from 0 to {there - 1}" if there else "the task has none"
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
