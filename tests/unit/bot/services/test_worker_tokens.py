from datetime import timedelta

import pytest

from bot.domain.errors import UserError
from bot.services.tokens import caller_for_token, create_token, revoke_token
from bot.services.worker_tokens import (
    admitted_worker,
    create_worker_token,
    revoke_worker_token,
    worker_tokens,
)
from tests.doubles.place import Place

DAY = timedelta(days=1)


async def test_a_token_admits_its_worker_until_it_ends(place: Place) -> None:
    made = await create_worker_token(place.store, place.clock, place.ada, "box-1", lifetime=DAY)
    assert made.secret.startswith("podium_worker_")
    assert await admitted_worker(place.store, place.clock, made.secret) == "box-1"
    with pytest.raises(UserError, match="this worker token is unknown, expired or revoked"):
        await admitted_worker(place.store, place.clock, made.secret + "x")
    place.clock.advance(DAY.total_seconds() - 1)
    assert await admitted_worker(place.store, place.clock, made.secret) == "box-1"
    place.clock.advance(1)
    with pytest.raises(UserError, match="expired or revoked"):
        await admitted_worker(place.store, place.clock, made.secret)


async def test_a_revoked_token_admits_nobody_and_another_may_follow(place: Place) -> None:
    made = await create_worker_token(place.store, place.clock, place.ada, "box", lifetime=DAY)
    with pytest.raises(UserError, match="podium token revoke box"):
        await create_worker_token(place.store, place.clock, place.ada, "box", lifetime=DAY)
    await revoke_worker_token(place.store, place.ada, "box")
    with pytest.raises(UserError, match="revoked"):
        await admitted_worker(place.store, place.clock, made.secret)
    with pytest.raises(UserError, match="no worker named 'box'"):
        await revoke_worker_token(place.store, place.ada, "box")
    again = await create_worker_token(place.store, place.clock, place.ada, "box", lifetime=DAY)
    assert await worker_tokens(place.store) == (again.token,)
    actions = [row.action for row in await place.store.audit.rows(3)]
    assert actions == ["worker-token", "revoke-worker-token", "worker-token"]


@pytest.mark.parametrize("name", ["", "Box", "a:b", "a/b", "-a", "x" * 41, "a\n"])
async def test_a_name_that_is_none_is_refused(place: Place, name: str) -> None:
    with pytest.raises(UserError, match="not a valid worker name"):
        await create_worker_token(place.store, place.clock, place.ada, name, lifetime=DAY)


async def test_neither_kind_of_token_does_what_the_other_is_for(place: Place) -> None:
    worker = await create_worker_token(place.store, place.clock, place.ada, "box", lifetime=DAY)
    own = await create_token(place.store, place.ada, "laptop")
    with pytest.raises(UserError, match="unknown, expired or revoked"):
        await caller_for_token(place.store, place.clock, worker.secret)
    with pytest.raises(UserError, match="this worker token is unknown, expired or revoked"):
        await admitted_worker(place.store, place.clock, own.secret)
    with pytest.raises(UserError, match="you have no token"):
        await revoke_token(place.store, place.ada, worker.token.id)
