"""Takes a submission in: checks it by the rules of acceptance and stores it with its jobs."""

from bot.domain import acceptance
from bot.domain.heading import parse_heading
from bot.domain.job import PRIORITIES
from bot.domain.submission import NewSubmission, Submission, SubmissionRequest
from bot.ports import Clock, Store
from bot.services.admit import admit
from bot.services.lookup import find_board


async def submit(store: Store, clock: Clock, request: SubmissionRequest) -> Submission:
    """Store an acceptable submission, one job per GPU type; UserError says what to change."""
    person = request.viewer.person
    source = acceptance.source_text(request.content)
    heading = parse_heading(source)
    board = await find_board(store, request.viewer, acceptance.board_name(request.board, heading))
    acceptance.check_open(board, clock.now())
    await admit(store, clock, person, board=board, mode=request.mode)
    return await store.submissions.add(
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
        )
    )
