"""Who asks: the viewer of a request, and the remote worker.

A route names the least that it needs: `AnyViewer`, `FromPerson`, `MaySubmit`, `MayCreate` or
`MayAdminister`. Where a token comes another way than in `Authorization`, `caller_by` gives its
caller, and the rules of `bot.domain.accounts` say what that one may.
"""

from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPBearer

from bot.domain.accounts import (
    ANYBODY,
    Caller,
    require_acting,
    require_admin,
    require_creator,
    require_person,
)
from bot.domain.api.workers import HARNESS_HEADER, SESSION
from bot.domain.errors import UserError
from bot.services.remote_workers import RemoteWorker, admitted
from bot.services.tokens import caller_for_token
from bot.web.context import WebContext, context_of
from bot.web.sessions import browser_of

_LONGEST_TOKEN = 200


async def agent_of(
    request: Request, session: Annotated[str, Path(pattern=SESSION.pattern)]
) -> RemoteWorker:
    """The agent that asks; UserError without a worker's token, or with another harness."""
    door = context_of(request)
    name = await admitted(door.store, door.clock, bearer(request))
    _check_harness(request.headers.get(HARNESS_HEADER, ""), door)
    return RemoteWorker(door.store, f"{name}:{session}", door.lease)


FromAgent = Annotated[RemoteWorker, Depends(agent_of)]


def bearer(request: Request) -> str:
    """The token of a request; UserError when it has none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 1 <= len(token.strip()) <= _LONGEST_TOKEN:
        raise UserError("bad-token", "this needs a token: send Authorization: Bearer TOKEN")
    return token.strip()


def _check_harness(version: str, door: WebContext) -> None:
    if version == door.harness:
        return
    wanted = f"kernel-podium=={door.package}" if door.package else "kernel-podium"
    raise UserError(
        "harness-version",
        f"this server judges with harness {door.harness}, the agent has {version[:40] or 'none'}, "
        f"and their times cannot be compared; on the agent's machine run "
        f"`pip install --upgrade '{wanted}'`, then start it again",
    )


__all__ = [
    "AnyViewer", "FromPerson", "MayAdminister", "MayCreate", "MaySubmit",
    "administrator", "caller_by", "creator", "person_of", "still_looks", "submitter", "viewer_of",
]  # fmt: skip

_READING = frozenset({"GET", "HEAD"})
TOKEN = "token"  # noqa: S105 - a scheme's name
_TOKEN = Depends(
    HTTPBearer(
        auto_error=False,
        scheme_name=TOKEN,
        description="A personal token, from `/profile link` on Discord, `podium token create "
        "--person NAME` at the machine that runs Podium, or `POST /api/v1/me/tokens`.",
    )
)
"""For the description of the API alone: it neither reads nor refuses anything."""
NEEDED = "needed"
"""A second scheme in the description, of routes which no reader without a token gets through."""
Needed = Annotated[object, Depends(HTTPBearer(auto_error=False, scheme_name=NEEDED))]


async def viewer_of(request: Request) -> Caller:
    """Who looks: the person of the token, or a reader without an account where none came.

    A browser's cookie counts for reading alone: whoever acts by it sends a form (`forms.py`).
    UserError `bad-token` when a token came and is no person's.
    """
    if "Authorization" not in request.headers:
        browser = await browser_of(request) if request.scope.get("method") in _READING else None
        return ANYBODY if browser is None else browser.session.caller
    return await caller_by(request, bearer(request))


async def caller_by(request: Request, secret: str) -> Caller:
    """Who calls by this token, however it came; UserError `bad-token` when it is nobody's."""
    door = context_of(request)
    return await caller_for_token(door.store, door.clock, secret)


async def still_looks(request: Request, viewer: Caller) -> bool:
    """Whether the request would come from the same viewer now: for answers that take long.

    A token may have been revoked or expired meanwhile, a browser signed out, a right withdrawn.
    """
    try:
        return await viewer_of(request) == viewer
    except UserError:
        return False


async def described(_: Annotated[object, _TOKEN], request: Request) -> Caller:
    """`viewer_of`, which the description of the API knows as the place of a token."""
    return await viewer_of(request)


AnyViewer = Annotated[Caller, Depends(described)]
"""The caller."""


async def person_of(viewer: AnyViewer, _: Needed = None) -> Caller:
    """The person who asks; UserError `bad-token` for anybody without an account."""
    require_person(viewer)
    return viewer


async def submitter(viewer: AnyViewer, _: Needed = None) -> Caller:
    """Who may submit, cancel and the like; UserError `narrow-token` with a token for reading."""
    require_acting(viewer)
    return viewer


async def creator(viewer: AnyViewer, _: Needed = None) -> Caller:
    """Who may create boards; UserError `not-allowed` for anybody else."""
    require_creator(viewer)
    return viewer


async def administrator(viewer: AnyViewer, _: Needed = None) -> Caller:
    """An admin by an admin's token; UserError `not-allowed` for anybody else."""
    require_admin(viewer)
    return viewer


FromPerson = Annotated[Caller, Depends(person_of)]
"""Somebody with an account, who reads."""
MaySubmit = Annotated[Caller, Depends(submitter)]
"""Somebody who may act as the person they are."""
MayCreate = Annotated[Caller, Depends(creator)]
"""Somebody who may create boards."""
MayAdminister = Annotated[Caller, Depends(administrator)]
"""An admin."""
