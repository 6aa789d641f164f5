"""Who asks: the agent whose token came with a request, and whether its harness is ours."""

from typing import Annotated

from fastapi import Depends, Path, Request

from bot.domain.api.workers import HARNESS_HEADER, SESSION
from bot.domain.errors import UserError
from bot.services.remote_workers import Agent
from bot.services.worker_tokens import admitted
from bot.web.context import Door, door_of

_LONGEST_TOKEN = 200


async def agent_of(
    request: Request, session: Annotated[str, Path(pattern=SESSION.pattern)]
) -> Agent:
    """The agent that asks; UserError without a worker's token, or with another harness."""
    door = door_of(request)
    name = await admitted(door.store, door.clock, bearer(request))
    _check_harness(request.headers.get(HARNESS_HEADER, ""), door)
    return Agent(door.store, f"{name}:{session}", door.lease)


FromAgent = Annotated[Agent, Depends(agent_of)]


def bearer(request: Request) -> str:
    """The token of a request; UserError when it has none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 1 <= len(token.strip()) <= _LONGEST_TOKEN:
        raise UserError("bad-token", "this needs a token: send Authorization: Bearer TOKEN")
    return token.strip()


def _check_harness(version: str, door: Door) -> None:
    if version == door.harness:
        return
    wanted = f"kernel-podium=={door.package}" if door.package else "kernel-podium"
    raise UserError(
        "harness-version",
        f"this server judges with harness {door.harness}, the agent has {version[:40] or 'none'}, "
        f"and their times cannot be compared; on the agent's machine run "
        f"`pip install --upgrade '{wanted}'`, then start it again",
    )
