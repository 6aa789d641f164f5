"""Submits an earlier submission's source once more, perhaps in another mode."""

from dataclasses import dataclass

from bot.domain.access import Viewer
from bot.domain.display import NewDisplay
from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.submission import Submission, SubmissionRequest
from bot.ports import Clock, Store
from bot.services.lookup import own_submission
from bot.services.submissions import submit
from runners.contract.task import Mode


@dataclass(frozen=True, slots=True)
class RerunRequest:
    """Which submission to run again; no mode means its own."""

    viewer: Viewer
    submission: SubmissionId
    mode: Mode | None = None
    display: NewDisplay | None = None
    key: str | None = None


async def rerun(store: Store, clock: Clock, request: RerunRequest) -> Submission:
    """A new submission of the same source; UserError when it is somebody else's or too late."""
    earlier = await own_submission(store, request.viewer, request.submission)
    board = await store.boards.get(earlier.board)
    if board is None:
        raise LookupError(f"board {earlier.board} of submission {earlier.id} is not there")
    if board.is_hidden:
        words = "this was a request to the evaluation server; send it there once more"
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
