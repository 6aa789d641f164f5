"""What whoever sits at the machine gives people: tokens, and the rights of an admin."""

from datetime import timedelta

from bot.domain.accounts import Token, TokenScope
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.domain.person import Person
from bot.domain.rights import MACHINE, Rights
from bot.ports import Clock, Store
from bot.services.audit import audited
from bot.services.tokens import NewToken, link, unlink

LOCAL = "local"
"""The kind of the accounts of people at the machine."""
_LONGEST_NAME = 64


async def grant(
    store: Store,
    clock: Clock,
    actor: PersonId,
    name: str,
    *,
    scope: TokenScope,
    lifetime: timedelta,
) -> NewToken:
    """A token of this scope for a person, whom one for administering makes an admin.

    `name` is that of an account at this machine, made when new, or an identity such as
    `discord:17`; UserError for an identity that nobody has.
    """
    person = await _person(store, name)
    until = clock.now() + lifetime
    async with audited(store, actor, f"{scope.word}-token", f"person {person.identity}") as tx:
        if scope is TokenScope.ADMIN:
            await tx.rights.note(person.id, MACHINE, Rights(is_admin=True, is_creator=True))
        return await link(tx, person.id, "made at the machine", scope=scope, expires_at=until)


async def granted(store: Store, name: str) -> tuple[Token, ...]:
    """A person's tokens that are not revoked."""
    return await store.tokens.of((await _known(store, name)).id)


async def withdraw_grant(
    store: Store, actor: PersonId, name: str, token: TokenId | None = None
) -> int:
    """End one token of a person; or all, with the rights given at this machine. Gives how many.

    With all of them every browser is signed out.
    """
    person = await _known(store, name)
    async with audited(store, actor, "revoke-token", f"person {person.identity}") as tx:
        if token is None:
            return await _withdraw_all(tx, person.id)
        await unlink(tx, person.id, token)
        return 1


async def _withdraw_all(store: Store, person: PersonId) -> int:
    """End every token and session of a person, and the rights given at this machine."""
    own = await store.tokens.of(person)
    ended = sum([await store.tokens.revoke(person, each.id) for each in own])
    for each in await store.tokens.sessions_of(person):
        await store.tokens.revoke(person, each.id)
    await store.rights.forget(person, MACHINE)
    return ended


async def _person(store: Store, name: str) -> Person:
    if ":" in name:
        return await _known(store, name)
    if not name.isprintable() or not 1 <= len(name.strip()) <= _LONGEST_NAME:
        raise UserError("bad-name", f"a name has 1 to {_LONGEST_NAME} printable characters")
    return await store.people.ensure(f"{LOCAL}:{name.strip()}", name.strip())


async def _known(store: Store, name: str) -> Person:
    identity = name if ":" in name else f"{LOCAL}:{name.strip()}"
    found = await store.people.find(identity)
    if found is None:
        raise UserError(
            "unknown-person",
            f"nobody named {name!r} has an account here; check the name, such as ada or discord:17",
        )
    return found
