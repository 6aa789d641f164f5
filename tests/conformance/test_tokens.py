"""What every store must do with tokens."""

from datetime import timedelta

import pytest

from bot.domain.accounts import Rights, TokenHolder, TokenScope
from bot.domain.errors import StoreError
from bot.domain.ids import TokenId
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

DIGEST, OTHER = "0" * 64, "1" * 64


async def test_a_token_is_found_by_its_digest_until_it_is_revoked(scene: Scene) -> None:
    tokens, ada = scene.store.tokens, scene.ada.id
    bob = (await scene.store.people.ensure("local:bob", "Bob")).id
    token = await tokens.add(ada, DIGEST, "laptop")
    second = await tokens.add(ada, OTHER, "desk")
    assert await tokens.find(DIGEST) == token
    assert (token.person, token.label, token.revoked_at) == (ada, "laptop", None)
    assert await tokens.of(ada) == (token, second)
    assert await tokens.of(bob) == ()
    assert not await tokens.revoke(bob, token.id)
    assert await tokens.revoke(ada, token.id)
    assert not await tokens.revoke(ada, token.id)
    assert not await tokens.revoke(ada, TokenId(999))
    assert await tokens.find(DIGEST) is None
    assert await tokens.find("2" * 64) is None
    assert await tokens.of(ada) == (second,)


async def test_the_holder_of_a_token_has_the_rights_of_all_sources(scene: Scene) -> None:
    tokens, rights, ada = scene.store.tokens, scene.store.rights, scene.ada
    bob = await scene.store.people.ensure("local:bob", "Bob")
    token = await tokens.add(ada.id, DIGEST, "laptop")
    assert await tokens.find_holder(DIGEST) == TokenHolder(token, ada, Rights())
    await rights.replace(ada.id, "one", Rights(frozenset({"a", "b"})))
    await rights.replace(ada.id, "two", Rights(frozenset({"b", "c"}), is_creator=True))
    await rights.replace(bob.id, "one", Rights(frozenset({"d"}), is_admin=True))
    held = Rights(frozenset({"a", "b", "c"}), is_creator=True)
    assert await tokens.find_holder(DIGEST) == TokenHolder(token, ada, held)
    await rights.replace(ada.id, "one", Rights(is_admin=True))
    found = await tokens.find_holder(DIGEST)
    assert found is not None
    assert found.rights == await rights.of(ada.id)
    session = await tokens.add(ada.id, OTHER, "Firefox", TokenScope.SESSION, begun_by=token.id)
    assert await tokens.find_holder(OTHER) == TokenHolder(session, ada, await rights.of(ada.id))
    assert await tokens.revoke(ada.id, token.id)
    assert await tokens.find_holder(DIGEST) is None
    assert await tokens.find_holder(OTHER) is None
    assert await tokens.find_holder("2" * 64) is None


async def test_a_workers_token_is_none_of_its_makers_own(scene: Scene, clock: ManualClock) -> None:
    tokens, ada = scene.store.tokens, scene.ada.id
    until = clock.now() + timedelta(days=1)
    own = await tokens.add(ada, DIGEST, "box")
    token = await tokens.add(ada, OTHER, "box", TokenScope.WORKER, expires_at=until)
    assert await tokens.find(OTHER) == token
    assert (token.scope, token.expires_at) == (TokenScope.WORKER, until)
    assert await tokens.of(ada) == (own,)
    assert not await tokens.revoke(ada, token.id)
    early = await tokens.add(ada, "2" * 64, "a", TokenScope.WORKER)
    assert await tokens.of_workers() == (early, token)


async def test_each_scope_of_a_person_is_among_the_own(scene: Scene) -> None:
    tokens, ada = scene.store.tokens, scene.ada.id
    scopes = (TokenScope.READ, TokenScope.PERSON, TokenScope.ADMIN)
    made = [await tokens.add(ada, str(n) * 64, "x", each) for n, each in enumerate(scopes)]
    assert [each.scope for each in await tokens.of(ada)] == list(scopes)
    assert all([await tokens.revoke(ada, each.id) for each in made])


async def test_what_has_expired_is_no_token_of_a_person_any_more(
    scene: Scene, clock: ManualClock
) -> None:
    tokens, ada = scene.store.tokens, scene.ada.id
    until = clock.now() + timedelta(hours=1)
    await tokens.add(ada, DIGEST, "box", expires_at=until)
    assert len(await tokens.of(ada)) == 1
    clock.advance(3600)
    assert await tokens.of(ada) == ()


async def test_a_worker_has_one_token_until_that_is_revoked(scene: Scene) -> None:
    tokens, ada = scene.store.tokens, scene.ada.id
    await tokens.add(ada, DIGEST, "box", TokenScope.WORKER)
    with pytest.raises(StoreError):
        await tokens.add(ada, OTHER, "box", TokenScope.WORKER)
    assert await tokens.revoke_worker("box")
    assert not await tokens.revoke_worker("box")
    assert await tokens.find(DIGEST) is None
    assert await tokens.of_workers() == ()
    await tokens.add(ada, OTHER, "box", TokenScope.WORKER)


async def test_a_browsers_session_is_no_token_and_ends_with_the_one_that_began_it(
    scene: Scene,
) -> None:
    tokens, ada = scene.store.tokens, scene.ada.id
    own = await tokens.add(ada, DIGEST, "laptop")
    session = await tokens.add(ada, OTHER, "Firefox", TokenScope.SESSION, begun_by=own.id)
    second = await tokens.add(ada, "2" * 64, "Safari", TokenScope.ADMIN_SESSION)
    assert await tokens.of(ada) == (own,)
    assert await tokens.sessions_of(ada) == (second, session)
    assert await tokens.find(OTHER) == session
    assert await tokens.revoke(ada, own.id)
    assert await tokens.find(OTHER) is None
    assert await tokens.sessions_of(ada) == (second,)
    assert await tokens.revoke(ada, second.id)
    assert await tokens.sessions_of(ada) == ()
