"""What every store must do with displays: one holder at a time, and nothing forgotten."""

from datetime import timedelta

import pytest

from bot.domain.submission import NewDisplay, NewSubmission, Submission
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

LEASE = timedelta(seconds=30)


async def shown(scene: Scene, place: str = "here") -> Submission:
    return await scene.store.submissions.add(
        NewSubmission(
            person=scene.ada.id,
            board=scene.board.id,
            task_version=scene.board.task_version,
            file_name="kernel.py",
            source="x",
            mode=Mode.TEST,
            gpus=("CPU",),
            priority=1,
            display=NewDisplay("discord", place),
        )
    )


async def test_a_display_is_stored_with_its_submission_and_held_by_one(scene: Scene) -> None:
    first, second = await shown(scene, "a"), await shown(scene, "b")
    await scene.submit()  # a submission of another door has none
    displays = scene.store.displays
    claimed = await displays.claim("discord", "one", LEASE)
    assert [(each.submission, each.place) for each in claimed] == [
        (first.id, "a"),
        (second.id, "b"),
    ]
    assert {each.person for each in claimed} == {scene.ada.id}
    assert await displays.claim("discord", "two", LEASE) == ()
    assert await displays.claim("web", "two", LEASE) == ()
    assert await displays.renew("one", LEASE) == (first.id, second.id)


async def test_who_lost_a_display_changes_nothing_of_it(scene: Scene, clock: ManualClock) -> None:
    submission = await shown(scene)
    displays = scene.store.displays
    await displays.claim("discord", "one", LEASE)
    clock.advance(31)
    assert await displays.renew("one", LEASE) == ()
    assert await displays.save_state(submission.id, "one", "late, but nobody else came")
    (taken,) = await displays.claim("discord", "two", LEASE)
    assert taken.place == "late, but nobody else came"
    assert not await displays.save_state(submission.id, "one", "mine")
    assert not await displays.finish(submission.id, "one", "mine")
    assert await displays.save_state(submission.id, "two", "theirs")
    found = await displays.find(submission.id)
    assert found is not None
    assert found.place == "theirs"


async def test_a_display_tells_how_often_it_was_taken_up(scene: Scene, clock: ManualClock) -> None:
    submission = await shown(scene)
    displays = scene.store.displays
    (first,) = await displays.claim("discord", "one", LEASE)
    await displays.release_all("one")
    (second,) = await displays.claim("discord", "two", LEASE)
    await displays.renew("two", LEASE)
    clock.advance(31)
    (third,) = await displays.claim("discord", "two", LEASE)
    found = await displays.find(submission.id)
    assert [first.claims, second.claims, third.claims] == [1, 2, 3]
    assert found == third


async def test_a_finished_display_is_never_claimed_again(scene: Scene, clock: ManualClock) -> None:
    submission = await shown(scene)
    displays = scene.store.displays
    await displays.claim("discord", "one", LEASE)
    assert await displays.finish(submission.id, "one", "all of it")
    assert not await displays.finish(submission.id, "one", "again")
    clock.advance(31)
    assert await displays.claim("discord", "two", LEASE) == ()
    found = await displays.find(submission.id)
    assert found is not None
    assert found.place == "all of it"


@pytest.mark.parametrize("limit", [1, 5])
async def test_what_is_let_go_can_be_claimed_at_once(scene: Scene, limit: int) -> None:
    for _ in range(3):
        await shown(scene)
    displays = scene.store.displays
    assert len(await displays.claim("discord", "one", LEASE, limit)) == min(limit, 3)
    assert await displays.release_all("one") == min(limit, 3)
    assert len(await displays.claim("discord", "two", LEASE)) == 3
