"""Tokens with which machines judge from elsewhere: made and ended by an admin, and looked at."""

import re
import secrets
from datetime import timedelta

from bot.domain.accounts import PREFIX, Token, TokenScope, digest_of
from bot.domain.errors import UserError, unknown_name
from bot.domain.ids import PersonId
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.tokens import NewToken

MOST_DAYS = 3650
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


async def issue(
    store: Store, clock: Clock, actor: PersonId, name: str, *, lifetime: timedelta
) -> NewToken:
    """A token for the machine of this name; UserError when it has one or the name will not do."""
    if not _NAME.fullmatch(name):
        raise UserError(
            "bad-name",
            f"{name!r} is no name for a worker: 1 to 40 of a-z, 0-9, dot, dash and underscore, "
            "such as gpu-box-1",
        )
    if any(each.label == name for each in await store.tokens.of_workers()):
        raise UserError(
            "has-token",
            f"worker {name} has a token; run `podium token revoke {name}` first, which ends it",
        )
    secret = f"{PREFIX}worker_{secrets.token_urlsafe(32)}"
    until = clock.now() + lifetime
    async with audited(store, actor, "worker-token", f"worker {name}") as tx:
        token = await tx.tokens.add(
            actor, digest_of(secret), name, TokenScope.WORKER, expires_at=until
        )
    return NewToken(token, secret)


async def worker_tokens(store: Store) -> tuple[Token, ...]:
    """Every token of a worker that is not revoked, by name."""
    return await store.tokens.of_workers()


async def revoke(store: Store, actor: PersonId, name: str) -> None:
    """End the token of a worker: from its next word on it is refused, with what it holds."""
    async with audited(store, actor, "revoke-worker-token", f"worker {name}") as tx:
        if not await tx.tokens.revoke_worker(name):
            raise unknown_name("worker", name, [each.label for each in await worker_tokens(tx)])


async def admitted(store: Store, clock: Clock, secret: str) -> str:
    """The name of the worker whose token this is; UserError for any other."""
    token = await store.tokens.find(digest_of(secret))
    if token is None or not token.of_worker or not token.is_live(clock.now()):
        raise UserError(
            "bad-token",
            "this is no token of a worker, or it has expired or is revoked; an admin makes one: "
            "podium token create --worker NAME",
        )
    return token.label
