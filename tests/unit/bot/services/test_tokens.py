import asyncio
from datetime import timedelta

import pytest

from bot.domain.accounts import Rights, Token, TokenScope
from bot.domain.errors import UserError
from bot.domain.ids import PersonId, TokenId
from bot.domain.submission import Ban
from bot.services.tokens import MOST_TOKENS, caller_for_token, create_token, revoke_token
from tests.doubles.place import Place


async def test_a_token_acts_for_its_person_until_it_is_ended(place: Place) -> None:
    made = await create_token(place.store, place.ada, " my \n laptop ")
    assert made.token.label == "my laptop"
    assert made.secret.startswith("podium_")
    assert (await caller_for_token(place.store, place.clock, made.secret)).person == place.ada
    with pytest.raises(UserError, match="unknown, expired or revoked"):
        await caller_for_token(place.store, place.clock, made.secret + "x")
    await revoke_token(place.store, place.ada, made.token.id)
    with pytest.raises(UserError, match="unknown, expired or revoked"):
        await caller_for_token(place.store, place.clock, made.secret)


async def test_two_tokens_differ_and_there_are_not_too_many(place: Place) -> None:
    secrets = {(await create_token(place.store, place.ada, "x")).secret for _ in range(MOST_TOKENS)}
    assert len(secrets) == MOST_TOKENS
    with pytest.raises(UserError, match="revoke one first"):
        await create_token(place.store, place.ada, "x")
    await create_token(place.store, await place.person("bob"), "x")


async def test_as_many_as_are_asked_for_at_once_are_not_too_many(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = place.store.tokens.of

    async def slowly(person: PersonId) -> tuple[Token, ...]:
        found = await of(person)
        await asyncio.sleep(0)
        return found

    monkeypatch.setattr(place.store.tokens, "of", slowly)
    asked = [create_token(place.store, place.ada, "x") for _ in range(3 * MOST_TOKENS)]
    await asyncio.gather(*asked, return_exceptions=True)
    assert len(await of(place.ada)) <= MOST_TOKENS
    for _ in range(MOST_TOKENS - len(await of(place.ada))):
        await create_token(place.store, place.ada, "x")


async def test_a_token_of_a_banned_person_lets_nothing_in(place: Place) -> None:
    before = await create_token(place.store, place.ada, "before")
    await place.store.moderation.ban(place.ada, Ban("forged times"))
    after = await create_token(place.store, place.ada, "after")
    for made in (before, after):
        with pytest.raises(UserError, match="banned from submitting: forged times"):
            await place.submit(
                (await caller_for_token(place.store, place.clock, made.secret)).person
            )


async def test_only_one_s_own_token_is_ended(place: Place) -> None:
    made = await create_token(place.store, place.ada, "x")
    for person, token in ((await place.person("bob"), made.token.id), (place.ada, TokenId(99))):
        with pytest.raises(UserError, match="no token"):
            await revoke_token(place.store, person, token)


async def test_a_token_ends_with_its_time(place: Place) -> None:
    until = place.clock.now() + timedelta(days=1)
    made = await create_token(place.store, place.ada, "x", expires_at=until)
    await caller_for_token(place.store, place.clock, made.secret)
    place.clock.advance(86_400)
    with pytest.raises(UserError, match="expired"):
        await caller_for_token(place.store, place.clock, made.secret)


async def test_an_admin_is_one_by_a_token_for_it_and_as_long_as_the_right_lasts(
    place: Place,
) -> None:
    with pytest.raises(UserError, match="only admins"):
        await create_token(place.store, place.ada, "x", scope=TokenScope.ADMIN)
    held = frozenset({"discord-guild:7"})
    await place.store.rights.replace(place.ada, "discord-guild:7", Rights(held, is_admin=True))
    scopes = (TokenScope.ADMIN, TokenScope.PERSON, TokenScope.READ)
    made = [await create_token(place.store, place.ada, each, scope=each) for each in scopes]
    found = [await caller_for_token(place.store, place.clock, each.secret) for each in made]
    assert [each.sees_all for each in found] == [True, False, False]
    assert [each.credentials for each in found] == [held | {"local:ada"}] * 3
    await place.store.rights.replace(place.ada, "discord-guild:7", Rights())
    asks = await caller_for_token(place.store, place.clock, made[0].secret)
    assert (asks.sees_all, asks.credentials) == (False, frozenset({"local:ada"}))
