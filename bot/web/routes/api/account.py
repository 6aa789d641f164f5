"""`/me`: who the token acts for, and that person's tokens."""

from datetime import timedelta
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Request

from bot.domain.accounts import Token, scope_of
from bot.domain.api.accounts import Me, Scope, TokenAnswer, TokenMade, TokenOrder, TokensAnswer
from bot.domain.api.base import BODY_MAX
from bot.domain.ids import TokenId
from bot.services.tokens import create_token_for_caller, revoke_token
from bot.web.auth import FromPerson, MaySubmit
from bot.web.bodies import read
from bot.web.context import context_of
from bot.web.routes.api.openapi import takes, unkept

router = APIRouter(prefix="/me", tags=["me"], dependencies=[Depends(unkept)])


@router.get("")
async def me(request: Request, viewer: FromPerson) -> Me:
    """Whose token came, and what may be done with it."""
    person = await context_of(request).store.people.get(viewer.person)
    if person is None:
        raise LookupError(f"person {viewer.person} of a token is not there")
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
async def tokens(request: Request, viewer: FromPerson) -> TokensAnswer:
    """Your tokens that are not revoked; their secrets are not kept."""
    found = await context_of(request).store.tokens.of(viewer.person)
    return TokensAnswer(tokens=tuple(_token(each) for each in found))


@router.post("/tokens", status_code=201, openapi_extra=takes(TokenOrder))
async def create(request: Request, viewer: MaySubmit) -> TokenMade:
    """A new token, never for more than the one that asks; it is shown this once."""
    door, order = context_of(request), await read(request, TokenOrder, BODY_MAX)
    made = await create_token_for_caller(
        door.store,
        door.clock,
        viewer,
        order.label,
        scope=scope_of(order.scope),
        lifetime=timedelta(days=order.days),
    )
    return TokenMade(**dict(_token(made.token)), token=made.secret)


@router.delete("/tokens/{number}", status_code=204)
async def revoke(
    request: Request, number: Annotated[int, Path(ge=1, lt=1 << 63)], viewer: MaySubmit
) -> None:
    """End one of your tokens: whatever uses it is refused from now on."""
    await revoke_token(context_of(request).store, viewer.person, TokenId(number))


def _token(token: Token) -> TokenAnswer:
    return TokenAnswer(
        id=token.id,
        label=token.label,
        scope=cast(Scope, token.scope_word),
        created_at=token.created_at,
        expires_at=token.expires_at,
    )
