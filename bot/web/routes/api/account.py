"""`/me`: who the token acts for, and that person's tokens."""

from datetime import timedelta
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Request

from bot.domain.accounts import scope_of
from bot.domain.api.accounts import Me, Scope, TokenAnswer, TokenMade, TokenOrder, TokensAnswer
from bot.domain.api.base import BODY_MAX
from bot.domain.ids import TokenId
from bot.services.tokens import create_token_for_caller, revoke_token
from bot.web import auth, bodies
from bot.web.context import context_of
from bot.web.routes.api.openapi import takes, uncached

router = APIRouter(prefix="/me", tags=["me"], dependencies=[Depends(uncached)])


@router.get("")
async def me(request: Request, viewer: auth.FromPerson) -> Me:
    """The person of the token, and its scope."""
    person = await context_of(request).store.people.get(viewer.person)
    if person is None:
        raise LookupError(f"person {viewer.person} of a token does not exist")
    return Me(
        id=person.id,
        identity=person.identity,
        name=person.name,
        scope=cast(Scope, viewer.scope.word),
        is_admin=viewer.sees_all,
        is_creator=viewer.is_creator,
        credentials=tuple(sorted(viewer.credentials)),
    )


@router.get("/tokens")
async def tokens(request: Request, viewer: auth.FromPerson) -> TokensAnswer:
    """Your tokens that are not revoked; their secrets are not stored."""
    own = await context_of(request).store.tokens.of(viewer.person)
    return TokensAnswer(tokens=tuple(map(TokenAnswer.of, own)))


@router.post("/tokens", status_code=201, openapi_extra=takes(TokenOrder))
async def create(request: Request, viewer: auth.MaySubmit) -> TokenMade:
    """Create a token, never with more rights than the calling one; it is shown only once."""
    context, order = context_of(request), await bodies.read(request, TokenOrder, BODY_MAX)
    created = await create_token_for_caller(
        context.store,
        context.clock,
        viewer,
        order.label,
        scope=scope_of(order.scope),
        lifetime=timedelta(days=order.days),
    )
    return TokenMade(**dict(TokenAnswer.of(created.token)), token=created.secret)


@router.delete("/tokens/{number}", status_code=204)
async def revoke(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: auth.MaySubmit
) -> None:
    """Revoke one of your tokens; programs that use it are refused from now on."""
    await revoke_token(context_of(request).store, viewer.person, TokenId(number))
