"""What every store must do with the threads of boards: each is created once."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from bot.domain.submission import NewDisplay, NewSubmission, ThreadKey
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

LEASE = timedelta(seconds=30)


def _shown(scene: Scene) -> NewSubmission:
    return NewSubmission(
        person=scene.ada.id,
        board=scene.board.id,
        task_version=scene.board.task_version,
        file_name="kernel.py",
        source="x = 1",
        mode=Mode.TEST,
        gpus=("CPU",),
        priority=10,
        display=NewDisplay("discord", "{}"),
    )


def key_of(scene: Scene, guild: str = "7") -> ThreadKey:
    return ThreadKey("discord", guild, scene.board.id, scene.ada.id)


async def test_of_many_claims_at_the_same_moment_one_creates_the_thread(scene: Scene) -> None:
    threads, key = scene.store.board_threads, key_of(scene)
    assert await threads.find(key) is None
    claims = await asyncio.gather(*(threads.claim(key, f"o{n}", LEASE) for n in range(8)))
    assert sorted(claims, key=str) == [1, *[None] * 7]
    owner = f"o{claims.index(1)}"
    assert not await threads.save(key, "another", "11")
    assert await threads.save(key, owner, "11")
    assert await threads.find(key) == "11"
    assert await threads.claim(key, owner, LEASE) is None


async def test_a_claim_after_the_lease_knows_of_the_earlier_attempt(
    scene: Scene, clock: ManualClock
) -> None:
    threads, key = scene.store.board_threads, key_of(scene)
    assert await threads.claim(key, "one", LEASE) == 1
    clock.advance(30)
    assert await threads.claim(key, "two", LEASE) == 2
    assert not await threads.save(key, "one", "11")
    assert not await threads.release(key, "one")
    assert await threads.release(key, "two")
    assert await threads.claim(key, "three", LEASE) == 3


async def test_a_lease_that_is_renewed_holds(scene: Scene, clock: ManualClock) -> None:
    threads, key = scene.store.board_threads, key_of(scene)
    assert not await threads.renew(key, "one", LEASE)
    await threads.claim(key, "one", LEASE)
    clock.advance(20)
    assert await threads.renew(key, "one", LEASE)
    assert not await threads.renew(key, "two", LEASE)
    clock.advance(20)
    assert await threads.claim(key, "two", LEASE) is None
    clock.advance(10)
    assert await threads.claim(key, "two", LEASE) == 2
    assert not await threads.renew(key, "one", LEASE)


async def test_a_lost_thread_is_replaced_once(scene: Scene) -> None:
    threads, key = scene.store.board_threads, key_of(scene)
    await threads.claim(key, "one", LEASE)
    await threads.save(key, "one", "11")
    assert await threads.claim(key, "one", LEASE, lost="10") is None
    assert await threads.claim(key, "one", LEASE, lost="11") == 2
    assert await threads.claim(key, "two", LEASE, lost="11") is None
    await threads.save(key, "one", "12")
    assert await threads.claim(key, "two", LEASE, lost="11") is None
    assert await threads.find(key) == "12"


async def test_idle_threads_are_private_and_sorted_by_use(scene: Scene, clock: ManualClock) -> None:
    store, threads = scene.store, scene.store.board_threads
    bob = await store.people.ensure("discord:2", "bob")
    first, second = key_of(scene), replace(key_of(scene), person=bob.id)
    public, elsewhere = replace(first, person=None), key_of(scene, "8")
    for number, key in enumerate((first, second, public, elsewhere)):
        clock.advance(1)
        await threads.claim(key, "one", LEASE)
        await threads.save(key, "one", f"1{number}")
    assert await threads.idle("discord", "7") == ("10", "11")
    clock.advance(1)
    assert await threads.use(first)
    assert not await threads.use(key_of(scene, "9"))
    assert await threads.idle("discord", "7") == ("11", "10")
    submission = await store.submissions.add(_shown(scene))
    assert await threads.idle("discord", "7") == ("11",)
    await store.displays.claim("discord", "one", LEASE)
    await store.displays.finish(submission.id, "one", "{}")
    assert await threads.idle("discord", "7") == ("11", "10")


async def test_the_threads_of_a_deleted_board_are_unknown(scene: Scene) -> None:
    threads, key = scene.store.board_threads, key_of(scene)
    await threads.claim(key, "one", LEASE)
    await threads.save(key, "one", "11")
    assert await scene.store.boards.delete(scene.board.id)
    assert await threads.find(key) is None


async def test_the_conversation_of_a_person_with_the_bot_is_stored(scene: Scene) -> None:
    displays = scene.store.displays
    assert await displays.conversation(scene.ada.id) is None
    await displays.save_conversation(scene.ada.id, "12")
    await displays.save_conversation(scene.ada.id, "13")
    assert await displays.conversation(scene.ada.id) == "13"
