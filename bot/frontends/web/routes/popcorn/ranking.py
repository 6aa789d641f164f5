"""Who stands where, as the sites of others read it; popcorn-cli does not ask."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from bot.domain.ids import PersonId
from bot.domain.leaderboard import BoardStandings
from bot.domain.rights import Caller
from bot.domain.score import Standing
from bot.domain.submission import Submission
from bot.frontends.web.door import Door, door_of
from bot.frontends.web.routes.popcorn.answering import Route, answered
from bot.frontends.web.routes.popcorn.callers import AnyReader
from bot.frontends.web.routes.popcorn.queues import Json
from bot.frontends.web.routes.popcorn.runs import moment
from bot.services.standings import standings

router = APIRouter(route_class=Route)

_MOST = (1 << 63) - 1
Count = Annotated[int | None, Query(ge=0, le=_MOST)]


@router.get("/submissions/{board}/{gpu}")
async def ranked(
    request: Request,
    reader: AnyReader,
    board: str,
    gpu: str,
    *,
    limit: Count = None,
    offset: Annotated[int, Query(ge=0, le=_MOST)] = 0,
) -> Response:
    """The best of each person, the fastest first; times in seconds."""
    door = door_of(request)
    found = await _standings(door, reader, board, gpu)
    entries = found.entries[offset : None if limit is None else offset + limit]
    submitted = await door.store.submissions.several([each.score.submission for each in entries])
    by_id = {each.id: each for each in submitted}
    return answered([_entry(each, by_id[each.score.submission], found) for each in entries])


@router.get("/submission_count/{board}/{gpu}")
async def count(
    request: Request, reader: AnyReader, board: str, gpu: str, *, user_id: Count = None
) -> Response:
    """How many people have a place, or how many ranked runs of one of them count."""
    found = await _standings(door_of(request), reader, board, gpu)
    if user_id is None:
        return answered({"count": len(found.entries)})
    person = PersonId(user_id)
    counted = sum(each.attempts for each in found.entries if each.score.person == person)
    return answered({"count": counted})


async def _standings(door: Door, reader: Caller, board: str, gpu: str) -> BoardStandings:
    (found,) = await standings(door.store, reader, board.lower(), gpu)
    return found


def _entry(entry: Standing, submission: Submission, found: BoardStandings) -> Json:
    score = entry.score
    return {
        "submission_name": submission.file_name,
        "submission_id": score.submission,
        "user_id": score.person,
        "submission_time": moment(score.submitted_at),
        "submission_score": score.value.time_ns / 1e9,
        "user_name": score.person_name,
        "rank": entry.rank,
        "leaderboard_name": found.board.name,
        "gpu_type": found.gpu,
    }
