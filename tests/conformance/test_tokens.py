"""What every store must do with tokens."""

from bot.domain.ids import TokenId
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
