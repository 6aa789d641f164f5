"""What every store must do with releases: one holder at a time, and gone when finished."""

import asyncio
from datetime import timedelta

from bot.domain.errors import UserError
from bot.domain.ids import PublicationId
from bot.domain.publication import NewPublication, Publication, PublicationSummary
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_task
from tests.doubles.stored import Scene

LEASE = timedelta(seconds=30)


async def waiting(scene: Scene, wish: str = "a board") -> PublicationId:
    new = NewPublication("discord", scene.ada.id, b"PK\0\xff", wish, "here")
    return await scene.store.publications.add(new)


async def test_a_release_is_held_by_one(scene: Scene) -> None:
    first, second = await waiting(scene, "a"), await waiting(scene, "b")
    publications = scene.store.publications
    (taken,) = await publications.claim("discord", "one", LEASE)
    assert taken == Publication(first, scene.ada.id, b"PK\0\xff", "a", "here", tries=1)
    assert await publications.claim("web", "two", LEASE) == ()
    assert [each.id for each in await publications.claim("discord", "two", LEASE, 5)] == [second]
    assert await publications.claim("discord", "three", LEASE) == ()
    assert await publications.renew("one", LEASE) == (first,)


async def test_who_lost_a_release_changes_nothing_of_it(scene: Scene, clock: ManualClock) -> None:
    number = await waiting(scene)
    publications = scene.store.publications
    await publications.claim("discord", "one", LEASE)
    assert await publications.save_state(number, "one", place="told")
    assert await publications.save_state(number, "one", state="half")
    clock.advance(31)
    assert await publications.renew("one", LEASE) == ()
    (taken,) = await publications.claim("discord", "two", LEASE)
    assert (taken.place, taken.state, taken.tries) == ("told", "half", 2)
    assert not await publications.save_state(number, "one", state="mine", place="mine")
    assert not await publications.finish(number, "one")
    assert await publications.finish(number, "two")
    assert not await publications.finish(number, "two")
    clock.advance(31)
    assert await publications.claim("discord", "three", LEASE) == ()


async def test_what_is_let_go_was_not_tried(scene: Scene) -> None:
    number = await waiting(scene)
    publications = scene.store.publications
    await publications.claim("discord", "one", LEASE)
    assert await publications.release_all("two") == 0
    assert await publications.release_all("one") == 1
    (taken,) = await publications.claim("discord", "two", LEASE)
    assert (taken.id, taken.tries) == (number, 1)


async def test_of_what_has_ended_only_the_words_are_kept(scene: Scene, clock: ManualClock) -> None:
    publications, ada = scene.store.publications, scene.ada.id
    number = await waiting(scene)
    assert await publications.summary("discord", number) == PublicationSummary(
        number, ada, "a board", "{}", tries=0, ended_at=None, has_zip=True
    )
    await publications.claim("discord", "one", LEASE)
    assert await publications.save_state(number, "one", state="published")
    assert not await publications.end(number, "two")
    assert await publications.end(number, "one")
    assert not await publications.end(number, "one")
    ended = PublicationSummary(number, ada, "a board", "published", tries=1, ended_at=clock.now())
    assert await publications.summary("discord", number) == ended
    assert await publications.summary("web", number) is None
    clock.advance(31)
    assert await publications.claim("discord", "two", LEASE) == ()
    assert await publications.delete_ended(ended.ended_at or clock.now()) == 0
    assert await publications.delete_ended(clock.now()) == 1
    assert await publications.summary("discord", number) is None


async def test_a_persons_releases_are_told_the_newest_first(scene: Scene) -> None:
    publications = scene.store.publications
    first, second = await waiting(scene, "a"), await waiting(scene, "b")
    bob = (await scene.store.people.ensure("local:bob", "Bob")).id
    assert [each.id for each in await publications.summaries_of("discord", scene.ada.id)] == [
        second,
        first,
    ]
    assert await publications.summaries_of("discord", bob) == ()
    assert await publications.summaries_of("web", scene.ada.id) == ()


async def test_of_one_person_only_some_are_held_at_once(scene: Scene, clock: ManualClock) -> None:
    publications = scene.store.publications
    first, second, third, fourth = [await waiting(scene) for _ in range(4)]
    bob = (await scene.store.people.ensure("local:bob", "Bob")).id
    of_bob = await publications.add(NewPublication("discord", bob, b"PK", "b"))
    of_web = await publications.add(NewPublication("web", scene.ada.id, b"PK", "b"))
    taken = await publications.claim("discord", "one", LEASE, 9)
    assert [each.id for each in taken] == [first, second, of_bob]
    assert await publications.claim("discord", "two", LEASE, 9) == ()
    assert [each.id for each in await publications.claim("web", "two", LEASE, 9)] == [of_web]
    assert await publications.end(first, "one")
    assert [each.id for each in await publications.claim("discord", "two", LEASE, 9)] == [third]
    clock.advance(31)
    lost = await publications.claim("discord", "three", LEASE, 9)
    assert [each.id for each in lost] == [second, third, of_bob]
    assert await publications.finish(second, "three")
    assert [each.id for each in await publications.claim("discord", "two", LEASE)] == [fourth]


async def test_a_release_is_cancelled_by_its_person_before_its_check_has_passed(
    scene: Scene,
) -> None:
    publications, ada = scene.store.publications, scene.ada.id
    bob = (await scene.store.people.ensure("local:bob", "Bob")).id
    first, passed = await waiting(scene), await waiting(scene)
    taken = await publications.claim("discord", "one", LEASE, 2)
    assert [each.id for each in taken] == [first, passed]
    assert await publications.save_state(
        passed, "one", state='{"publishing": true, "outcome": null}'
    )
    assert await publications.save_state(
        first, "one", state='{"publishing": false, "outcome": null}'
    )
    assert await publications.cancel(bob, "by Bob", first) == ()
    assert await publications.cancellation(first) is None
    assert await publications.cancel(ada, "by Ada", first) == (first,)
    assert await publications.cancel(ada, "again", first) == ()
    assert await publications.cancellation(first) == "by Ada"
    assert await publications.cancel(ada, "by Ada", passed) == ()
    second, third, fourth = [await waiting(scene) for _ in range(3)]
    assert await publications.finish(passed, "one")
    (last,) = await publications.claim("discord", "one", LEASE)
    assert last.id == second
    assert await publications.save_state(second, "one", state='{"outcome": {"title": "refused"}}')
    assert await publications.cancel(ada, "all", None) == (third, fourth)
    assert await publications.cancellation(second) is None


async def test_of_two_versions_that_follow_the_same_one_only_one_is_stored(scene: Scene) -> None:
    boards, board = scene.store.boards, scene.board
    first = board.task_version
    ends = await asyncio.gather(
        *(
            boards.add_version(board.id, make_task(seed=number), f"next-{number}", first)
            for number in range(4)
        ),
        return_exceptions=True,
    )
    refused = [each.code for each in ends if isinstance(each, UserError)]
    assert refused == ["board-moved"] * 3
    assert len(await boards.versions(board.id)) == 2
