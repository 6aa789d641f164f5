import pytest

from bot.domain.errors import UserError
from bot.domain.ids import TokenId
from bot.services.link import MOST_TOKENS, link, unlink, whose
from tests.doubles.place import Place


async def test_a_token_acts_for_its_person_until_it_is_ended(place: Place) -> None:
    made = await link(place.store, place.ada, " my \n laptop ")
    assert made.token.label == "my laptop"
    assert made.secret.startswith("podium_")
    assert (await whose(place.store, made.secret)).id == place.ada
    with pytest.raises(UserError, match="unknown or revoked"):
        await whose(place.store, made.secret + "x")
    await unlink(place.store, place.ada, made.token.id)
    with pytest.raises(UserError, match="unknown or revoked"):
        await whose(place.store, made.secret)


async def test_two_tokens_differ_and_there_are_not_too_many(place: Place) -> None:
    secrets = {(await link(place.store, place.ada, "x")).secret for _ in range(MOST_TOKENS)}
    assert len(secrets) == MOST_TOKENS
    with pytest.raises(UserError, match="revoke one first"):
        await link(place.store, place.ada, "x")
    await link(place.store, await place.person("bob"), "x")


async def test_a_token_of_a_banned_person_lets_nothing_in(place: Place) -> None:
    before = await link(place.store, place.ada, "before")
    await place.store.moderation.ban(place.ada, "forged times")
    after = await link(place.store, place.ada, "after")
    for made in (before, after):
        with pytest.raises(UserError, match="banned from submitting: forged times"):
            await place.submit((await whose(place.store, made.secret)).id)


async def test_only_one_s_own_token_is_ended(place: Place) -> None:
    made = await link(place.store, place.ada, "x")
    for person, token in ((await place.person("bob"), made.token.id), (place.ada, TokenId(99))):
        with pytest.raises(UserError, match="no token"):
            await unlink(place.store, person, token)
