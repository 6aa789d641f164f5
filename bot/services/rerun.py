"""Submits an earlier submission's source once more, perhaps in another mode."""

from dataclasses import dataclass

from bot.domain.display import NewDisplay
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, SubmissionId
from bot.domain.submission import Submission, SubmissionRequest
from bot.ports import Clock, Store
from bot.services.lookup import find_submission
from bot.services.submit import submit
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class RerunRequest:
    """Which submission to run again; no mode means its own."""

    person: PersonId
    submission: SubmissionId
    mode: Mode | None = None
    display: NewDisplay | None = None


async def rerun(store: Store, clock: Clock, request: RerunRequest) -> Submission:
    """A new submission of the same source; UserError when it is somebody else's or too late."""
    earlier = await find_submission(store, request.submission)
    if earlier.person != request.person:
        raise UserError(
            "not-yours", f"submission {earlier.id} is somebody else's; run your own again"
        )
    board = await store.boards.get(earlier.board)
    if board is None:
        raise LookupError(f"board {earlier.board} of submission {earlier.id} is not there")
    source = await store.submissions.source(earlier.id)
    return await submit(
        store,
        clock,
        SubmissionRequest(
            person=request.person,
            file_name=earlier.file_name,
            content=source.encode(),
            mode=request.mode or earlier.mode,
            board=board.name,
            gpus=earlier.gpus,
            display=request.display,
        ),
    )
