"""The caller of a request: a viewer, or a remote worker.

A route declares the right that it requires: `AnyViewer`, `FromPerson`, `MaySubmit`, `MayCreate` or
`MayAdminister`. For a token from elsewhere than `Authorization`, call `caller_with_token`, then
check the right with `bot.domain.accounts`.
"""

from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPBearer

from bot.domain import accounts
from bot.domain.api.workers import HARNESS_HEADER, SESSION
from bot.domain.errors import UserError
from bot.services.dispatch.worker_queue import RemoteWorker
from bot.services.tokens import caller_for_token
from bot.services.worker_tokens import admitted_worker
from bot.web.context import WebContext, context_of
from bot.web.sessions import browser_of

_LONGEST_TOKEN = 200


async def calling_worker(
    request: Request, session: Annotated[str, Path(pattern=SESSION.pattern)]
) -> RemoteWorker:
    """Return the calling remote worker; UserError without its token, or with another harness."""
    context = context_of(request)
    name = await admitted_worker(context.store, context.clock, bearer(request))
    _check_harness(request.headers.get(HARNESS_HEADER, ""), context)
    worker, confirm = f"{name}:{session}", context.confirm_places
    return RemoteWorker(context.store, worker, context.lease, confirm_places=confirm)


CallingWorker = Annotated[RemoteWorker, Depends(calling_worker)]


def bearer(request: Request) -> str:
    """Return the token of a request; UserError when it has none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not 1 <= len(token.strip()) <= _LONGEST_TOKEN:
        raise accounts.needs_token()
    return token.strip()


def _check_harness(version: str, context: WebContext) -> None:
    if version == context.harness:
        return
    wanted = f"kernel-podium=={context.package}" if context.package else "kernel-podium"
    raise UserError(
        "harness-version",
        f"this server judges with harness {context.harness}, the worker has "
        f"{version[:40] or 'none'}, and their times cannot be compared; "
        f"on the worker's machine run "
        f"`pip install --upgrade '{wanted}'`, then start it again",
    )


_READ_METHODS = frozenset({"GET", "HEAD"})
TOKEN = "token"  # noqa: S105 - a scheme's name
_TOKEN_SCHEME = Depends(
    HTTPBearer(
        auto_error=False,
        scheme_name=TOKEN,
        description="A personal token, from `/profile link` on Discord, `podium token create "
        "--person NAME` at the machine that runs Podium, or `POST /api/v1/me/tokens`.",
    )
)
"""Only for the API description: it neither reads nor refuses anything."""
NEEDED = "needed"
"""A second scheme in the description, for routes that require a token."""
RequiresToken = Annotated[object, Depends(HTTPBearer(auto_error=False, scheme_name=NEEDED))]


async def viewer_of(request: Request) -> accounts.Caller:
    """Return the viewer: the token's person, or a reader without an account.

    A browser's cookie permits only reading; actions need a form (`sessions.py`). UserError
    `bad-token` when a token is given that is not a person's.
    """
    if "Authorization" not in request.headers:
        browser = (
            await browser_of(request) if request.scope.get("method") in _READ_METHODS else None
        )
        return accounts.ANYBODY if browser is None else browser.session.caller
    return await caller_with_token(request, bearer(request))


async def caller_with_token(request: Request, secret: str) -> accounts.Caller:
    """Return the caller with this token; UserError `bad-token` if it is unknown."""
    context = context_of(request)
    return await caller_for_token(context.store, context.clock, secret)


async def has_same_viewer(request: Request, viewer: accounts.Caller) -> bool:
    """Return whether the request would still have the same viewer; checked during a long response.

    Meanwhile a token may be revoked or expire, a browser sign out, or a right be withdrawn.
    """
    try:
        return await viewer_of(request) == viewer
    except UserError:
        return False


async def declared_viewer(_: Annotated[object, _TOKEN_SCHEME], request: Request) -> accounts.Caller:
    """Return the viewer; the API description then says that the route takes a token."""
    return await viewer_of(request)


AnyViewer = Annotated[accounts.Caller, Depends(declared_viewer)]
"""Any caller, also without an account."""


async def person_of(viewer: AnyViewer, _: RequiresToken = None) -> accounts.Caller:
    """Return a caller with an account; UserError `bad-token` without one."""
    accounts.require_person(viewer)
    return viewer


async def submitter(viewer: AnyViewer, _: RequiresToken = None) -> accounts.Caller:
    """Return a caller who may act, such as submit; UserError `narrow-token` for a read token."""
    accounts.require_acting(viewer)
    return viewer


async def creator(viewer: AnyViewer, _: RequiresToken = None) -> accounts.Caller:
    """Return a caller who may create boards; UserError `not-allowed` for others."""
    accounts.require_creator(viewer)
    return viewer


async def administrator(viewer: AnyViewer, _: RequiresToken = None) -> accounts.Caller:
    """Return an admin who calls with an admin token; UserError `not-allowed` for others."""
    accounts.require_admin(viewer)
    return viewer


FromPerson = Annotated[accounts.Caller, Depends(person_of)]
"""A caller with an account; the token may be read-only."""
MaySubmit = Annotated[accounts.Caller, Depends(submitter)]
"""A caller whose token may act, not only read."""
MayCreate = Annotated[accounts.Caller, Depends(creator)]
"""A caller who may create boards."""
MayAdminister = Annotated[accounts.Caller, Depends(administrator)]
"""An admin."""
