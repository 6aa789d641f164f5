import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.publication import PublishRequest
from bot.services.moderation import Decision
from bot.services.publishing.publish import publish
from bot.services.submissions import best_of, rejudge_from, rejudge_standings, rejudge_submission
from runners.contract.task import Mode
from tests.doubles.factories import make_task
from tests.doubles.place import Place


async def test_the_same_source_is_judged_by_the_present_task_for_the_same_person(
    place: Place,
) -> None:
    bob = await place.person("bob")
    earlier = await place.submit(bob)
    changed = make_task(description="Another one.")
    published = await publish(place.store, place.clock, PublishRequest(place.ada), changed)
    again = await rejudge_submission(place.store, Decision(place.ada, "new task"), earlier.id)
    assert (again.person, again.source_hash) == (bob, earlier.source_hash)
    assert again.task_version == published.board.task_version != earlier.task_version
    (row,) = await place.store.audit.rows(1)
    assert (row.action, row.reason) == ("rejudge", "new task")


async def test_a_gpu_type_that_the_board_has_dropped_is_refused(place: Place) -> None:
    earlier = await place.submit()
    await place.store.boards.configure(place.board.id, ("H100",), None)
    with pytest.raises(UserError, match="no longer runs on CPU"):
        await rejudge_submission(place.store, Decision(place.ada, ""), earlier.id)


async def test_everyones_best_is_judged_by_the_next_version_once(place: Place) -> None:
    bob = await place.person("bob")
    for person in (place.ada, bob):
        await place.judged(await place.submit(person, mode=Mode.RANKED))
    before = place.board.task_version
    changed = make_task(description="Another one.")
    board = (await publish(place.store, place.clock, PublishRequest(place.ada), changed)).board
    deed = Decision(place.ada, "task version 2")
    assert len(await best_of(place.store, board, before)) == 2
    assert await rejudge_standings(place.store, deed, board, before) == 2
    assert await rejudge_standings(place.store, deed, board, before) == 0
    submitted = await place.store.submissions.to(board.id)
    again = [each.person for each in submitted if each.task_version == board.task_version]
    assert sorted(again) == sorted([place.ada, bob])


async def test_only_what_is_judged_on_every_gpu_type_already_is_left_out(place: Place) -> None:
    await place.store.boards.configure(place.board.id, ("CPU", "H100"), None)
    earlier = await place.submit(mode=Mode.RANKED, gpus=("CPU", "H100"))
    await place.judged(earlier)
    before = place.board.task_version
    changed = make_task(description="Another one.", gpus=("CPU", "H100"))
    board = (await publish(place.store, place.clock, PublishRequest(place.ada), changed)).board
    own = await place.submit(mode=Mode.RANKED, gpus=("H100",))
    assert own.source_hash == earlier.source_hash
    deed = Decision(place.ada, "task version 2")
    assert await rejudge_standings(place.store, deed, board, before) == 1
    assert await rejudge_standings(place.store, deed, board, before) == 0


async def test_what_was_given_up_or_cancelled_is_judged_all_the_same(place: Place) -> None:
    await place.judged(await place.submit(mode=Mode.RANKED))
    before = place.board.task_version
    changed = make_task(description="Another one.")
    board = (await publish(place.store, place.clock, PublishRequest(place.ada), changed)).board
    deed = Decision(place.ada, "task version 2")
    assert await rejudge_standings(place.store, deed, board, before) == 1
    job = await place.claim()
    await place.store.jobs.release(job.id, job.fence, "no runner", final=True)
    assert await rejudge_standings(place.store, deed, board, before) == 1
    assert await rejudge_standings(place.store, deed, board, before) == 0


async def test_only_who_may_change_a_board_has_its_standings_judged_again(place: Place) -> None:
    await place.judged(await place.submit(mode=Mode.RANKED))
    changed = make_task(description="Another one.")
    board = (await publish(place.store, place.clock, PublishRequest(place.ada), changed)).board
    with pytest.raises(UserError, match="belongs to another person"):
        await rejudge_from(place.store, Viewer(await place.person("bob")), board, 1)
    for number in (2, 3):
        with pytest.raises(UserError, match=f"task version {number} is the current one"):
            await rejudge_from(place.store, Viewer(place.ada), board, number)
    assert await rejudge_from(place.store, Viewer(place.ada), board, 1) == (1, 2)
    with pytest.raises(UserError, match="nothing to rejudge"):
        await rejudge_from(place.store, Viewer(place.ada), board, 1)
