"""Tests of sessions: what each may, and when it ends."""

from datetime import timedelta

import pytest

from bot.domain.accounts import Rights, TokenScope
from bot.domain.errors import UserError
from bot.domain.records import KnownPerson
from bot.services.tokens import (
    LIFETIME,
    MOST_SESSIONS,
    BrowserSession,
    caller_for_token,
    create_local_token,
    create_token,
    revoke_access,
    revoke_token,
    session_of,
    sessions_of,
    sign_in_as,
    sign_in_by_token,
    sign_out,
    sign_out_elsewhere,
)
from tests.doubles.place import Place


async def signed_in(place: Place, secret: str) -> BrowserSession:
    made = await sign_in_by_token(place.store, place.clock, secret, "Firefox")
    found = await session_of(place.store, place.clock, made.secret)
    assert found is not None
    return found


async def test_a_session_may_what_its_token_may_and_no_more(place: Place) -> None:
    await place.store.rights.replace(place.ada, "machine", Rights(is_admin=True, is_creator=True))
    sees = {}
    for scope in (TokenScope.PERSON, TokenScope.ADMIN):
        made = await create_token(place.store, place.ada, "x", scope=scope)
        sees[scope] = (await signed_in(place, made.secret)).caller.sees_all
    assert sees == {TokenScope.PERSON: False, TokenScope.ADMIN: True}
    reading = await create_token(place.store, place.ada, "x", scope=TokenScope.READ)
    with pytest.raises(UserError, match="is read-only"):
        await signed_in(place, reading.secret)
    await place.store.rights.remove(place.ada, "machine")
    (newest, _) = await sessions_of(place.store, place.clock, place.ada)
    assert newest.scope is TokenScope.ADMIN_SESSION


async def test_who_is_no_admin_any_more_is_none_in_a_session_that_lasts(place: Place) -> None:
    known = KnownPerson("discord:5", "Eve")
    made = await sign_in_as(place.store, place.clock, known, "Firefox")
    found = await session_of(place.store, place.clock, made.secret)
    assert found is not None
    assert (found.person.identity, found.caller.sees_all) == ("discord:5", False)
    await place.store.rights.replace(found.person.id, "machine", Rights(is_admin=True))
    again = await session_of(place.store, place.clock, made.secret)
    assert again is not None
    assert again.caller.sees_all


async def test_a_session_ends_by_signing_out_with_its_time_and_with_its_token(place: Place) -> None:
    made = await create_token(place.store, place.ada, "laptop")
    one = await sign_in_by_token(place.store, place.clock, made.secret, "one")
    two = await sign_in_by_token(place.store, place.clock, made.secret, "two")
    three = await sign_in_as(place.store, place.clock, KnownPerson("local:ada", "ada"), "three")
    await sign_out(place.store, place.ada, one.token.id)
    assert await session_of(place.store, place.clock, one.secret) is None
    with pytest.raises(UserError, match="already ended"):
        await sign_out(place.store, place.ada, one.token.id)
    await revoke_token(place.store, place.ada, made.token.id)
    assert await session_of(place.store, place.clock, two.secret) is None
    assert await sessions_of(place.store, place.clock, place.ada) == (three.token,)
    place.clock.advance(LIFETIME.total_seconds())
    assert await session_of(place.store, place.clock, three.secret) is None


async def test_a_session_lasts_no_longer_than_its_token(place: Place) -> None:
    until = place.clock.now() + timedelta(hours=1)
    made = await create_token(place.store, place.ada, "x", expires_at=until)
    assert (await signed_in(place, made.secret)).token.expires_at == until


async def test_secrets_are_good_for_their_own_door_alone(place: Place) -> None:
    made = await create_token(place.store, place.ada, "x")
    session = await sign_in_by_token(place.store, place.clock, made.secret, "")
    with pytest.raises(UserError, match="unknown, expired or revoked"):
        await caller_for_token(place.store, place.clock, session.secret)
    with pytest.raises(UserError, match="personal token is unknown"):
        await sign_in_by_token(place.store, place.clock, session.secret, "")
    assert await session_of(place.store, place.clock, made.secret) is None
    assert await place.store.tokens.of(place.ada) == (made.token,)


async def test_only_so_many_browsers_are_signed_in_and_others_can_be_signed_out(
    place: Place,
) -> None:
    made = await create_token(place.store, place.ada, "x")
    latest = [await signed_in(place, made.secret) for _ in range(MOST_SESSIONS + 2)][-1]
    found = await sessions_of(place.store, place.clock, place.ada)
    assert (len(found), found[0]) == (MOST_SESSIONS, latest.token)
    assert await sign_out_elsewhere(place.store, latest) == MOST_SESSIONS - 1
    assert await sessions_of(place.store, place.clock, place.ada) == (latest.token,)
    with pytest.raises(UserError, match="already ended"):
        await sign_out(place.store, await place.person("bob"), latest.token.id)


async def test_with_all_tokens_of_a_person_every_browser_is_signed_out(place: Place) -> None:
    day = timedelta(days=1)
    await create_local_token(
        place.store, place.clock, place.ada, "ada", scope=TokenScope.PERSON, lifetime=day
    )
    made = await sign_in_as(place.store, place.clock, KnownPerson("local:ada", "ada"), "x")
    await revoke_access(place.store, place.ada, "ada")
    assert await session_of(place.store, place.clock, made.secret) is None
