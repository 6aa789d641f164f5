"""`/checks`: how the checks of one's tasks go, from the zip to the board."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from bot.domain.api.publishing import CheckAnswer, ChecksAnswer
from bot.web.auth import FromPerson
from bot.web.context import DOOR, door_of
from bot.web.publications import Check, own_check
from bot.web.routes.api.bodies import unkept
from bot.web.routes.api.check_shapes import check_answer

router = APIRouter(prefix="/checks", tags=["leaderboards"], dependencies=[Depends(unkept)])


@router.get("")
async def own(request: Request, viewer: FromPerson) -> ChecksAnswer:
    """Your own checks of the last month, newest first."""
    door = door_of(request)
    told = await door.store.releases.told_to(DOOR, viewer.person)
    now = door.clock.now()
    found = [await check_answer(door.store, Check.of(each), now) for each in told]
    return ChecksAnswer(checks=tuple(found))


@router.get("/{number}")
async def check(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: FromPerson
) -> CheckAnswer:
    """How far a check of yours is: each run of its solutions, and what became of the board."""
    door = door_of(request)
    return await check_answer(door.store, await own_check(door, viewer, number), door.clock.now())
