"""Takes a submission in: checks it by the rules of acceptance and stores it with its jobs."""

import structlog

from bot.domain import acceptance
from bot.domain.errors import UserError
from bot.domain.heading import parse_heading
from bot.domain.job import PRIORITIES
from bot.domain.submission import NewSubmission, Submission, SubmissionRequest
from bot.ports import Clock, Store
from bot.services.admit import admit
from bot.services.lookup import find_board

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


async def _take_in(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    person = request.viewer.person
    source = acceptance.source_text(request.content)
    heading = parse_heading(source)
    board = await find_board(store, request.viewer, acceptance.board_name(request.board, heading))
    acceptance.check_open(board, clock.now())
    await admit(store, clock, person, board=board, mode=request.mode)
    submission = await store.submissions.add(
        NewSubmission(
            person=person,
            board=board.id,
            task_version=board.task_version,
            file_name=acceptance.file_name(request.file_name),
            source=source,
            mode=request.mode,
            gpus=acceptance.choose_gpus(request.gpus, heading.gpus, board.gpus),
            priority=PRIORITIES[request.mode],
            display=request.display,
            once=request.once,
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
