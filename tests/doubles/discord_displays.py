"""Displays of submissions in a channel of the local Discord, which tests advance step by step."""

import asyncio

from typing_extensions import override

from bot.discord.context import FRONT_END
from bot.discord.displays import DisplayedSubmission
from bot.domain.submission import Submission
from runners.contract.evaluation import CaseKind, CaseResult
from runners.contract.task import Mode
from tests.doubles.discord.permissions import EVERYONE, Permission
from tests.doubles.discord.rest.faults import Fault
from tests.doubles.discord_room import LEASE, OWNER, Room
from tests.doubles.factories import make_case, make_measurement

LONG_S = 10.0
"""Only a line that was refused waits this long."""
UNKNOWN_CHANNEL, UNKNOWN_MEMBER, UNKNOWN_MESSAGE = 10003, 10007, 10008
CLOSED, TOO_MANY_THREADS = 50007, 160006
"""Codes of refusals that the bot cannot foresee; each happens once."""
ENOUGH = EVERYONE | Permission.MANAGE_THREADS | Permission.MANAGE_ROLES | Permission.MANAGE_CHANNELS


async def to_the_end(room: Room, show: DisplayedSubmission) -> int:
    """Advance until all is shown; return the number of steps."""
    for count in range(1, 20):
        reached = await room.steps.advance(show, OWNER)
        if reached.done:
            return count
        wait_s = reached.again_s or 0.0
        assert wait_s < LONG_S, "it was refused, and would be tried again later"
        await asyncio.sleep(wait_s)
    raise AssertionError("it never came to an end")


def faster(time_ns: float) -> tuple[CaseResult, ...]:
    """Cases with this time."""
    timed = make_case(CaseKind.BENCHMARK, measurement=make_measurement(time_ns))
    return (make_case(), make_case(), timed)


async def judged(
    room: Room, *, in_guild: bool = True, mode: Mode = Mode.RANKED
) -> tuple[Submission, DisplayedSubmission]:
    submission = await room.submit(in_guild=in_guild, mode=mode)
    await room.place.judged(submission)
    return submission, await room.claim(submission)


async def finished(room: Room, submission: Submission) -> bool:
    """Whether its display is finished."""
    room.place.clock.advance(3600)
    left = await room.place.store.displays.claim(FRONT_END, "somebody", LEASE)
    return submission.id not in [each.submission for each in left]


async def conversing(room: Room) -> None:
    """Store that Alice has written to the bot before."""
    await room.place.store.displays.save_conversation(room.place.ada, str(room.alice.dm.id))


class Lost(Fault):
    """The nth request of a route is carried out, and its answer is lost."""

    def __init__(self, method: str, path: str, nth: int, status: int = 503) -> None:
        super().__init__(method, path, status, carried_out=True)
        self.before = nth - 1

    @override
    def applies_to(self, method: str, path: str) -> bool:
        if self.hits or not super().applies_to(method, path):
            return False
        self.before -= 1
        return self.before < 0
