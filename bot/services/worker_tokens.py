"""Creates, checks and revokes the tokens of remote workers."""

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


async def create_worker_token(
    store: Store, clock: Clock, actor: PersonId, name: str, *, lifetime: timedelta
) -> NewToken:
    """Create a token for the machine of this name; UserError if it has one or a bad name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            "bad-name",
            f"{name!r} is not a valid worker name; use 1 to 40 of a-z, 0-9, '.', '-' and '_', "
            "such as gpu-box-1",
        )
    if any(each.label == name for each in await store.tokens.of_workers()):
        raise UserError(
            "has-token",
            f"worker {name} already has a token; revoke it first with `podium token revoke {name}`",
        )
    secret = f"{PREFIX}worker_{secrets.token_urlsafe(32)}"
    until = clock.now() + lifetime
    async with audited(store, actor, "worker-token", f"worker {name}") as tx:
        token = await tx.tokens.add(
            actor, digest_of(secret), name, TokenScope.WORKER, expires_at=until
        )
    return NewToken(token, secret)


async def worker_tokens(store: Store) -> tuple[Token, ...]:
    """Return every token of a worker that is not revoked, by name."""
    return await store.tokens.of_workers()


async def revoke_worker_token(store: Store, actor: PersonId, name: str) -> None:
    """Revoke a worker's token: its next request is refused, including for jobs it holds."""
    async with audited(store, actor, "revoke-worker-token", f"worker {name}") as tx:
        if not await tx.tokens.revoke_worker(name):
            raise unknown_name("worker", name, [each.label for each in await worker_tokens(tx)])


async def admitted_worker(store: Store, clock: Clock, secret: str) -> str:
    """Return the name of the worker with this token; UserError for any other token."""
    token = await store.tokens.find(digest_of(secret))
    if token is None or not token.is_worker_token or not token.is_live(clock.now()):
        raise UserError(
            "bad-token",
            "this worker token is unknown, expired or revoked; an admin can create one with "
            "`podium token create --worker NAME`",
        )
    return token.label
