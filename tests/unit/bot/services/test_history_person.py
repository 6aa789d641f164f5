import pytest

from bot.domain.accounts import SYSTEM_IDENTITY
from bot.domain.board import NOBODY, Access, Viewer, Visibility
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.publication import PublishRequest
from bot.services.history import person_profile
from bot.services.maintenance import queue_references
from bot.services.publishing.publish import publish
from runners.contract.task import Mode
from tests.doubles.clock import ManualClock
from tests.doubles.factories import make_task
from tests.doubles.memory_store import MemoryStore
from tests.doubles.place import Place, make_place

ANYBODY = Viewer(NOBODY)


@pytest.fixture
async def place(memory_store: MemoryStore, clock: ManualClock) -> Place:
    return await make_place(memory_store, clock)


async def test_a_person_has_places_and_ranked_submissions(place: Place) -> None:
    bo = await place.person("bo")
    ranked = await place.submit(bo)
    await place.judged(ranked)
    tried = await place.submit(bo, mode=Mode.TEST)
    found = await person_profile(place.store, ANYBODY, bo)
    assert [(each.board.name, each.own.standing.rank) for each in found.standings] == [
        ("vectoradd", 1)
    ]
    assert [each.submission.id for each in found.past] == [ranked.id]
    own = await person_profile(place.store, Viewer(bo), bo)
    assert [each.submission.id for each in own.past] == [tried.id, ranked.id]
    assert own.own


async def test_who_is_on_no_board_that_one_sees_does_not_exist(place: Place) -> None:
    bo, cy = await place.person("bo"), await place.person("cy")
    await place.judged(await place.submit(bo))
    hidden = Access(visibility=Visibility.PRIVATE)
    await place.store.boards.restrict(place.board.id, hidden)
    for looked_for in (bo, cy, PersonId(999)):
        with pytest.raises(UserError) as caught:
            await person_profile(place.store, ANYBODY, looked_for)
        assert (
            caught.value.message == f"person {looked_for} has no submissions on these leaderboards"
        )
    assert (await person_profile(place.store, Viewer(place.ada), bo)).standings
    assert (await person_profile(place.store, Viewer(bo), bo)).standings == ()


async def test_what_the_house_has_judged_is_for_the_boards_creator(place: Place) -> None:
    files = {"reference.py": "def ref_kernel(data): ...\n", "task.py": ""}
    task = make_task(name="sort", files=files, shared_files=("task.py",))
    await publish(place.store, place.clock, PublishRequest(place.ada), task)
    assert await queue_references(place.store) == 1
    house = (await place.store.people.ensure(SYSTEM_IDENTITY, "Podium")).id
    told = await person_profile(place.store, Viewer(place.ada), house)
    assert [each.board_name for each in told.past] == ["sort"]
    with pytest.raises(UserError, match="has no submissions on"):
        await person_profile(place.store, ANYBODY, house)
