from datetime import timedelta

import pytest

from bot.domain.accounts import TokenScope
from bot.domain.errors import UserError
from bot.domain.ids import TokenId
from bot.services.tokens import (
    NewToken,
    caller_for_token,
    create_local_token,
    list_tokens,
    revoke_access,
)
from tests.doubles.place import Place


async def give(place: Place, name: str, scope: TokenScope = TokenScope.PERSON) -> NewToken:
    lifetime = timedelta(days=2)
    return await create_local_token(
        place.store, place.clock, place.ada, name, scope=scope, lifetime=lifetime
    )


async def test_a_new_name_gets_an_account_and_an_admin_its_rights(place: Place) -> None:
    made = await give(place, "grace", TokenScope.ADMIN)
    asks = await caller_for_token(place.store, place.clock, made.secret)
    assert asks.sees_all
    assert asks.credentials == {"local:grace"}
    assert made.token.expires_at == place.clock.now() + timedelta(days=2)
    (row, *_) = await place.store.audit.rows()
    assert (row.actor, row.action, row.subject) == (place.ada, "admin-token", "person local:grace")


async def test_an_identity_is_taken_as_it_is_and_must_be_known(place: Place) -> None:
    with pytest.raises(UserError, match="discord:17"):
        await give(place, "discord:18")
    known = await place.store.people.ensure("discord:18", "Lin")
    assert (await give(place, "discord:18", TokenScope.READ)).token.person == known.id
    with pytest.raises(UserError, match="name must have 1 to"):
        await give(place, " ")


async def test_withdrawing_ends_the_tokens_and_the_rights(place: Place) -> None:
    first, second = await give(place, "ada", TokenScope.ADMIN), await give(place, "ada")
    assert await revoke_access(place.store, place.ada, "ada", second.token.id) == 1
    assert await list_tokens(place.store, "ada") == (first.token,)
    assert (await place.store.rights.of(place.ada)).is_admin
    assert await revoke_access(place.store, place.ada, "ada") == 1
    assert not (await place.store.rights.of(place.ada)).is_admin
    with pytest.raises(UserError, match="no token"):
        await revoke_access(place.store, place.ada, "ada", TokenId(99))
    with pytest.raises(UserError, match="no account named"):
        await list_tokens(place.store, "nobody")
