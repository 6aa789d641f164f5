"""A person's own submissions: the list, one with its runs, and taking one back."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from bot.domain.errors import UserError
from bot.domain.ids import SubmissionId
from bot.domain.records import HistoryEntry, JobResult
from bot.domain.rights import Caller
from bot.domain.score import ScoreValue
from bot.domain.status import SubmissionStatus
from bot.domain.submission import SubmissionState
from bot.frontends.web.door import Door, door_of
from bot.frontends.web.routes.popcorn.answering import Route, answered
from bot.frontends.web.routes.popcorn.callers import FromPerson, FromSubmitter
from bot.frontends.web.routes.popcorn.queues import Json, queue_where_known
from bot.frontends.web.routes.popcorn.runs import moment, runs_of, seconds
from bot.frontends.web.routes.popcorn.standing import standing_of
from bot.ports import Store
from bot.services.cancel import cancel
from bot.services.history import history
from bot.services.lookup import own_submission
from bot.services.moderate import withdraw
from bot.services.source import source
from bot.services.status import status

router = APIRouter(route_class=Route)

_PAGE, _FURTHEST = 100, 1_000
_MOVING = {SubmissionState.QUEUED, SubmissionState.RUNNING}
Number = Annotated[int, Path(ge=1, lt=1 << 63)]


@router.get("/user/submissions")
async def own(
    request: Request,
    person: FromPerson,
    leaderboard: str | None = None,
    *,
    limit: int = 50,
    offset: int = 0,
) -> Response:
    """The newest first, of one board or of all."""
    if not (1 <= limit <= _PAGE and 0 <= offset <= _FURTHEST):
        words = f"limit is from 1 to {_PAGE}, and offset from 0 to {_FURTHEST}"
        raise UserError("bad-page", words)
    name = None if leaderboard is None else leaderboard.lower()
    store = door_of(request).store
    found = await history(store, person, name, limit=offset + limit)
    return answered([_summary(each) for each in found[offset:]])


@router.get("/user/submissions/{number}")
async def one(request: Request, person: FromPerson, number: Number) -> Response:
    """One of the person's own, as far as it is; popcorn-cli asks every 5 s."""
    door = door_of(request)
    submission = await own_submission(door.store, person, SubmissionId(number))
    reading = await status(door.store, submission.id)
    return answered(await details(door, person, reading))


@router.delete("/user/submissions/{number}")
async def take_back(request: Request, person: FromSubmitter, number: Number) -> Response:
    """Stop what is unfinished of it, and take it off its board; what was submitted is kept."""
    store, submission = door_of(request).store, SubmissionId(number)
    await cancel(store, person, submission)
    try:
        await withdraw(store, person, "", submission)
    except UserError as error:
        if error.code != "off-board":  # the second time is no fault
            raise
    return answered({"status": "ok", "submission_id": number})


async def details(door: Door, caller: Caller, reading: SubmissionStatus) -> Json:
    """A submission with its source, its runs and where it stands."""
    submission, board = reading.submission, reading.board
    word, error = standing_of(reading)
    scores = await _scores(door.store, submission.id)
    queue = None if reading.is_final else await queue_where_known(door.store, submission.gpus[0])
    return {
        "id": submission.id,
        "leaderboard_id": board.id,
        "leaderboard_name": board.name,
        "file_name": submission.file_name,
        "user_id": str(submission.person),
        "submission_time": moment(submission.created_at),
        "done": reading.is_final,
        "code": await _code(door, caller, submission.id),
        "runs": [run for job in reading.jobs for run in runs_of(job, scores.get(job.job.gpu))],
        "job": {"status": word, "error": error, "last_heartbeat": None},
        "runner_queue": queue,
    }


async def _code(door: Door, caller: Caller, submission: SubmissionId) -> str:
    """The source, empty where it is somebody else's and its board does not show it."""
    try:
        return (await source(door.store, door.clock, caller, submission)).text
    except UserError as error:
        if error.code != "hidden-source":
            raise
        return ""


async def _scores(store: Store, submission: SubmissionId) -> dict[str, ScoreValue]:
    outcomes = await store.results.outcomes([submission])
    return {each.gpu: each.score for each in outcomes if each.score is not None}


def _summary(entry: HistoryEntry) -> Json:
    submission = entry.submission
    return {
        "id": submission.id,
        "leaderboard_name": entry.board_name,
        "file_name": submission.file_name,
        "submission_time": moment(submission.created_at),
        "done": submission.state not in _MOVING,
        "runs": [_line(each) for each in entry.results],
    }


def _line(outcome: JobResult) -> Json:
    return {"gpu_type": outcome.gpu, "score": seconds(outcome.score)}
