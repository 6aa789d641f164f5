"""What every store must do with invite links: each invites at most its number of people."""

import asyncio
from datetime import timedelta

from bot.domain.board import InviteLink, NewInviteLink
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

DIGEST = "d" * 64


async def added(scene: Scene, clock: ManualClock, most: int = 2) -> InviteLink:
    until = clock.now() + timedelta(days=1)
    link = NewInviteLink(scene.board.id, scene.ada.id, DIGEST, most, until)
    return await scene.store.invites.add(link)


async def guests(scene: Scene) -> frozenset[str]:
    board = await scene.store.boards.get(scene.board.id)
    assert board is not None
    return board.access.guests


async def test_a_link_invites_and_counts_each_person_once(scene: Scene, clock: ManualClock) -> None:
    invites, link = scene.store.invites, await added(scene, clock)
    assert (link.most, link.uses) == (2, 0)
    assert await invites.find(DIGEST) == link
    for identity in ("local:eve", "local:eve", "local:bob", "local:eve"):
        assert await invites.use(DIGEST, identity) == scene.board.id
    assert await invites.use(DIGEST, "local:dan") is None
    assert await guests(scene) == {"local:eve", "local:bob"}
    (found,) = await invites.of(scene.board.id)
    assert found.uses == 2
    assert await invites.use("e" * 64, "local:dan") is None


async def test_of_many_uses_at_the_same_moment_no_more_than_the_limit_are_invited(
    scene: Scene, clock: ManualClock
) -> None:
    await added(scene, clock, most=3)
    used = await asyncio.gather(
        *(scene.store.invites.use(DIGEST, f"local:p{number}") for number in range(8))
    )
    assert sum(each is not None for each in used) == 3
    assert len(await guests(scene)) == 3


async def test_a_link_ends_when_it_is_revoked_or_expires(scene: Scene, clock: ManualClock) -> None:
    invites, link = scene.store.invites, await added(scene, clock)
    clock.advance(timedelta(days=1).total_seconds())
    assert await invites.find(DIGEST) is None
    assert await invites.use(DIGEST, "local:eve") is None
    assert await invites.of(scene.board.id) == ()
    assert not await invites.revoke(scene.board.id, link.id)
    until = clock.now() + timedelta(days=1)
    again = await invites.add(NewInviteLink(scene.board.id, scene.ada.id, "f" * 64, 1, until))
    other = type(scene.board.id)(scene.board.id + 1)
    assert not await invites.revoke(other, again.id)
    assert await invites.revoke(scene.board.id, again.id)
    assert not await invites.revoke(scene.board.id, again.id)
    assert await invites.use("f" * 64, "local:eve") is None
    assert await guests(scene) == frozenset()


async def test_a_link_ends_with_its_board(scene: Scene, clock: ManualClock) -> None:
    await added(scene, clock)
    await scene.store.boards.delete(scene.board.id)
    assert await scene.store.invites.find(DIGEST) is None
    assert await scene.store.invites.use(DIGEST, "local:eve") is None
