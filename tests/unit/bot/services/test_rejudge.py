import pytest

from bot.domain.errors import UserError
from bot.services.moderate import Deed
from bot.services.publish import PublishRequest, publish
from bot.services.rejudge import rejudge
from tests.doubles.factories import make_task
from tests.doubles.place import Place


async def test_the_same_source_is_judged_by_the_present_task_for_the_same_person(
    place: Place,
) -> None:
    bob = await place.person("bob")
    earlier = await place.submit(bob)
    changed = make_task(description="Another one.")
    published = await publish(place.store, place.clock, PublishRequest(place.ada, changed))
    again = await rejudge(place.store, Deed(place.ada, "new task"), earlier.id)
    assert (again.person, again.source_hash) == (bob, earlier.source_hash)
    assert again.task_version == published.board.task_version != earlier.task_version
    (row,) = await place.store.audit.rows(1)
    assert (row.action, row.reason) == ("rejudge", "new task")


async def test_a_gpu_type_that_the_board_has_dropped_is_refused(place: Place) -> None:
    earlier = await place.submit()
    await place.store.boards.configure(place.board.id, ("H100",), None)
    with pytest.raises(UserError, match="none of CPU any more"):
        await rejudge(place.store, Deed(place.ada, ""), earlier.id)
