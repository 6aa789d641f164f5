"""What every store must do with a submission that comes again with its key."""

import asyncio
from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.domain.submission import KEY_TTL, IdempotencyKey, RateLimit
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

ONCE = IdempotencyKey("k-1", "of this body")


async def test_of_many_at_one_moment_one_is_stored_and_all_get_it(scene: Scene) -> None:
    limit = RateLimit(1, timedelta(hours=1), scene.board.id, None)
    await scene.store.moderation.set_limit(limit)
    made = await asyncio.gather(*(scene.submit(key=ONCE) for _ in range(8)))
    (stored,) = await scene.store.submissions.to(scene.board.id)
    assert {each.id for each in made} == {stored.id}
    assert len(await scene.store.jobs.of(stored.id)) == 1
    assert await scene.store.submissions.first(scene.ada.id, ONCE) == stored


async def test_a_key_with_another_body_is_refused_and_stores_nothing(scene: Scene) -> None:
    await scene.submit(key=ONCE)
    with pytest.raises(UserError, match="came with another submission within 24 h") as refusal:
        await scene.submit(key=IdempotencyKey("k-1", "of another"))
    assert refusal.value.code == "key-reused"
    with pytest.raises(UserError, match="k-1"):
        await scene.store.submissions.first(scene.ada.id, IdempotencyKey("k-1", "of another"))
    assert len(await scene.store.submissions.to(scene.board.id)) == 1


async def test_keys_are_each_persons_own(scene: Scene) -> None:
    bob = await scene.store.people.ensure("local:bob", "Bob")
    assert await scene.store.submissions.first(bob.id, ONCE) is None
    hers, his = await scene.submit(key=ONCE), await scene.submit(bob, key=ONCE)
    assert hers.id != his.id


async def test_a_key_stands_for_its_submission_for_a_day(scene: Scene, clock: ManualClock) -> None:
    first = await scene.submit(key=ONCE)
    clock.advance(KEY_TTL.total_seconds() - 1)
    assert (await scene.submit(key=ONCE)).id == first.id
    assert await scene.store.submissions.delete_expired_keys() == 0
    clock.advance(1)
    later = await scene.submit(key=IdempotencyKey("k-1", "of another"))
    assert later.id != first.id
    clock.advance(KEY_TTL.total_seconds())
    assert await scene.store.submissions.delete_expired_keys() == 1
    assert await scene.store.submissions.delete_expired_keys() == 0


async def test_a_board_that_goes_takes_the_keys_of_its_submissions_along(scene: Scene) -> None:
    await scene.submit(key=ONCE)
    assert await scene.store.boards.delete(scene.board.id)
    assert await scene.store.submissions.first(scene.ada.id, ONCE) is None
