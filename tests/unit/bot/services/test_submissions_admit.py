from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.domain.submission import Ban, RateLimit
from runners.contract.task import Mode
from tests.doubles.place import Place


async def test_a_banned_person_is_told_why_and_nothing_is_stored(place: Place) -> None:
    await place.store.moderation.ban(place.ada, Ban("forged times"))
    with pytest.raises(UserError, match="banned from submitting: forged times") as refusal:
        await place.submit()
    assert refusal.value.code == "banned"
    assert await place.store.submissions.history(place.ada) == ()
    await place.submit(await place.person("bob"))


async def test_nothing_is_taken_during_a_pause(place: Place) -> None:
    await place.store.moderation.pause("a new driver")
    with pytest.raises(UserError, match="are paused: a new driver") as refusal:
        await place.submit()
    assert refusal.value.code == "paused"
    await place.store.moderation.resume()
    await place.submit()


async def test_a_limit_holds_for_each_person_until_its_time_is_over(place: Place) -> None:
    limit = RateLimit(1, timedelta(hours=1), place.board.id, Mode.RANKED)
    await place.store.moderation.set_limit(limit)
    await place.submit()
    place.clock.advance(1800)
    with pytest.raises(UserError, match="submit again in 30 min") as refusal:
        await place.submit()
    assert refusal.value.code == "rate-limit"
    await place.submit(mode=Mode.TEST)
    await place.submit(await place.person("bob"))
    place.clock.advance(1801)
    await place.submit()
